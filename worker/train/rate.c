/* SPDX-License-Identifier: Apache-2.0 */
#include "train/rate.h"

#include <math.h>

double wk_rate_step(double lr, double gamma, long long epoch)
{
    return lr * pow(gamma, (double)epoch);
}
