/* SPDX-License-Identifier: Apache-2.0 */
/* GELU in its tanh form, and its derivative, as cuBLASLt's epilogues have them. */
#ifndef HG_TESTS_GPU_EMULATOR_GELU_H
#define HG_TESTS_GPU_EMULATOR_GELU_H

#include <math.h>

#define GELU_A 0.79788456080286535588 /* sqrt(2 / pi) */
#define GELU_B 0.044715

static inline double gelu(double x)
{
    return 0.5 * x * (1 + tanh(GELU_A * (x + GELU_B * x * x * x)));
}

static inline double gelu_slope(double x)
{
    double u = tanh(GELU_A * (x + GELU_B * x * x * x));

    return 0.5 * (1 + u) + 0.5 * x * (1 - u * u) * GELU_A * (1 + 3 * GELU_B * x * x);
}

#endif
