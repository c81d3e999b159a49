/* Suite row: the laws of the state's algebra, for both working types (row.c, row_steps.c).
 * SPDX-License-Identifier: MIT */
#include "row.h"

int main(void)
{
    Suite *s = suite_create("row");
    suite_add_tcase(s, row_cases_f32());
    suite_add_tcase(s, row_cases_f64());
    suite_add_tcase(s, step_cases_f32());
    suite_add_tcase(s, step_cases_f64());
    return paint_run(s);
}
