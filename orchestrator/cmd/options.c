/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/options.h"

#include <stdlib.h>

const char *hg_options_reports(const char *value)
{
    const char *set = getenv("HPCGRID_REPORTS");

    if (value)
        return value;
    return set && *set ? set : "reports";
}
