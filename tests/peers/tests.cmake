# SPDX-License-Identifier: Apache-2.0
# Programs that ./dev test --peers installs: a browser, TeX, R, PyPI's packages ($HPCGRID_PEERS).
hg_add_bats(peers/page.bats peers 300)
hg_add_bats(peers/forms.bats peers 300)
hg_add_bats(peers/figures.bats peers 300)
hg_add_bats(peers/ddp.bats peers 300)
hg_add_bats(peers/cuda12.bats peers 900)
hg_add_bats(peers/trainers.bats peers 900)
hg_add_bats(peers/answers.bats peers 300)
