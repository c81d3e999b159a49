/* Suite row: the laws of the state's algebra, for both working types (row.c).
 * SPDX-License-Identifier: MIT */
#include "row.h"

int main(void)
{
    Suite *s = suite_create("row");
    suite_add_tcase(s, row_cases_f32());
    suite_add_tcase(s, row_cases_f64());
    return paint_run(s);
}
