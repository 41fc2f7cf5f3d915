# SPDX-License-Identifier: Apache-2.0
"""Print a SQuAD file with its articles n times over, ids made different."""
import copy
import json
import sys

squad = json.load(open(sys.argv[1], encoding="utf-8"))
articles = []
for i in range(int(sys.argv[2])):
    for article in copy.deepcopy(squad["data"]):
        for paragraph in article["paragraphs"]:
            for qa in paragraph["qas"]:
                qa["id"] += f"-{i}"
        articles.append(article)
json.dump({"data": articles, "version": squad["version"]}, sys.stdout, ensure_ascii=False)
