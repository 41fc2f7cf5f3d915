# SPDX-License-Identifier: Apache-2.0
hg_add_unit(base)
hg_add_unit(rundir)
hg_add_unit(template)
hg_add_unit(exec)
hg_add_unit(events)
hg_add_unit(lock)
hg_add_unit(stats)
