/* The two compilations of row.c and row_steps.c. SPDX-License-Identifier: MIT */
#ifndef ROW_H
#define ROW_H

#include "paint.h"

TCase *row_cases_f32(void);
TCase *row_cases_f64(void);
TCase *step_cases_f32(void);
TCase *step_cases_f64(void);

#endif
