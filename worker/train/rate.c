/* SPDX-License-Identifier: Apache-2.0 */
#include "train/rate.h"

#include <math.h>

double wk_rate_step(double lr, double gamma, long long epoch)
{
    return lr * pow(gamma, (double)epoch);
}

double wk_rate_constant(double lr, long step, long warm)
{
    return step < warm ? lr * (double)step / (double)warm : lr;
}

double wk_rate_linear(double lr, long step, long warm, long total)
{
    double left = (double)(total - step) / (double)(total > warm ? total - warm : 1);

    return step < warm ? wk_rate_constant(lr, step, warm) : lr * (left > 0 ? left : 0);
}
