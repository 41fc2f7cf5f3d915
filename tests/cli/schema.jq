# SPDX-License-Identifier: Apache-2.0
# violations($schema): what is wrong with the input by a JSON Schema of the words that reports/*.schema.json use. An unknown word is an error.
def kind: if type == "number" and . == floor then "integer" else type end;
def is($t): kind == $t or ($t == "number" and kind == "integer");
def fault($at; $text): "\($at): \($text)";
def violations($root; $schema; $at):
    . as $v
    | ($schema | if has("$ref") then . + reduce (."$ref" | ltrimstr("#/") | split("/"))[] as $k ($root; .[$k]) else . end) as $s
    | ($s | keys[] | select(IN("$schema", "$ref", "$defs", "title", "description", "type", "properties", "required", "additionalProperties", "items",
        "enum", "const", "minimum", "maximum", "minItems", "maxItems", "oneOf", "anyOf") | not) | error("schema word \(.) is not known here")),
      (if $s | has("type") then ([$s.type] | flatten | map(. as $t | $v | is($t)) | any | not) as $bad
        | select($bad) | fault($at; "is \($v | kind), not \($s.type)") else empty end),
      (if $s | has("const") then select($v != $s.const) | fault($at; "is not \($s.const)") else empty end),
      (if $s | has("enum") then select($s.enum | index([$v]) | not) | fault($at; "\($v | tojson) is none of \($s.enum)") else empty end),
      (if ($v | type) == "number" then
        (select($s.minimum != null and $v < $s.minimum), select($s.maximum != null and $v > $s.maximum)) | fault($at; "\($v) is out of range") else empty end),
      (if ($v | type) == "array" then
        ((select($s.minItems != null and ($v | length) < $s.minItems), select($s.maxItems != null and ($v | length) > $s.maxItems))
            | fault($at; "has \($v | length) items")),
        (select($s | has("items")) | range($v | length) as $i | $v[$i] | violations($root; $s.items; "\($at)/\($i)")) else empty end),
      (if ($v | type) == "object" then
        (($s.required // [])[] as $k | select($v | has($k) | not) | fault($at; "lacks \($k)")),
        ($v | keys[] as $k | if ($s.properties // {}) | has($k) then .[$k] | violations($root; $s.properties[$k]; "\($at)/\($k)")
            elif $s.additionalProperties == false then fault($at; "has \($k)")
            elif ($s.additionalProperties | type) == "object" then .[$k] | violations($root; $s.additionalProperties; "\($at)/\($k)")
            else empty end) else empty end),
      (if $s | has("anyOf") then select([$s.anyOf[] as $o | $v | [violations($root; $o; $at)] == []] | any | not) | fault($at; "is none of several") else empty end),
      (if $s | has("oneOf") then select(([$s.oneOf[] as $o | $v | select([violations($root; $o; $at)] == [])] | length) != 1) | fault($at; "is not one of several") else empty end);
def violations($schema): violations($schema; $schema; "");
