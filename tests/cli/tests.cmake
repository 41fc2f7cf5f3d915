# SPDX-License-Identifier: Apache-2.0
hg_add_bats(cli/05-house.bats cli 60)
hg_add_bats(cli/10-check.bats cli 120)
hg_add_bats(cli/20-expand.bats cli 120)
hg_add_bats(cli/40-node.bats cli 120)
hg_add_bats(cli/45-collect.bats cli 120)
hg_add_bats(cli/60-report.bats cli 120)
hg_add_bats(cli/61-compare.bats cli 60)
