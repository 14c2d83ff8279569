#!/bin/bash
# st-diff: element types, forms of output, statuses. What it compares and how is tests/unit/test_tensor_diff.c's.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
d=tests/data/diff
unset NL_MODEL NL_ISA NL_DEVICE NL_THREADS
a=$tap_dir/a.safetensors b=$tap_dir/b.safetensors

# A file of one F32 tensor [1,2]: NAME, BYTES as printf has them.
file() {
    local header="{\"$1\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}"
    # shellcheck disable=SC2059
    printf "$(printf '\\x%02x' ${#header})\0\0\0\0\0\0\0%s$2" "$header"
}
file w '\0\0\x80\x3f\0\0\0\x40' > "$a" # 1 2
file w '\0\0\x80\x3f\0\0\x40\x40' > "$b" # 1 3

ok "every element type as torch converts it" st-diff --atol 0 --rtol 0 $d/stored.safetensors $d/exact.safetensors
is "17 of them" "$(st-diff --tsv $d/stored.safetensors $d/exact.safetensors | grep -c '	agrees	')" 17
exits "a folder, an index and its files are the same" 0 '' sh -c \
    "st-diff tests/data/index/whole tests/data/index/whole/model.safetensors.index.json > $tap_dir/table"
exits "a difference" 1 '' st-diff "$a" "$b"
is "the table" "$(st-diff "$a" "$b")" "name  shape    max abs   max rel     cosine      bad  first bad
w     [1,2]          1     0.333  0.9899495        1  [0,1]

1 of 1 differ by more than 0.0001 + 0.0001 |b|; the first: w at [0,1]: 2 and 3"
is "--tsv" "$(st-diff --tsv "$a" "$b")" "w	differs	[1,2]	1	0.333333333	0.989949494	1	[0,1]	2	3"
is "--json" "$(st-diff --json "$a" "$b")" \
    '{"name":"w","verdict":"differs","first":{"dtype":"F32","shape":[1,2]},"second":{"dtype":"F32","shape":[1,2]},"max_abs":1,"max_rel":0.333333333,"cosine":0.989949494,"bad":1,"first_bad":[0,1],"a":2,"b":3}'
exits "--atol 1 is enough" 0 '' st-diff -q --atol 1 --rtol 0 "$a" "$b"
exits "--atol 0.99 is not" 1 '' st-diff -q --atol 0.99 --rtol 0 "$a" "$b"
exits "--rtol 0.34 is" 0 '' st-diff -q --atol 0 --rtol 0.34 "$a" "$b"
exits "--rtol 0.33 is not: of the second's values" 1 '' st-diff -q --atol 0 --rtol 0.33 "$a" "$b"
is "-q prints nothing" "$(st-diff -q "$a" "$b")" ""

file v '\0\0\x80\x3f\0\0\0\x40' > "$tap_dir/v.safetensors"
exits "another name" 1 '' st-diff "$a" "$tap_dir/v.safetensors"
is "and what is said of it" "$(st-diff --tsv "$a" "$tap_dir/v.safetensors")" "v	only in the second	[1,2]							
w	only in the first	[1,2]							"
is "the first is named" "$(st-diff "$a" "$tap_dir/v.safetensors" | tail -n 1)" "2 of 2 differ by more than 0.0001 + 0.0001 |b|; the first: v: only in the second"
exits "--common" 0 '' st-diff --common "$a" "$tap_dir/v.safetensors"
exits "--map" 0 '' st-diff --map w=v "$a" "$tap_dir/v.safetensors"
exits "--map, the first that matches" 0 '' st-diff --map '*x=y*' --map 'w*=v*' --map 'w=z' "$a" "$tap_dir/v.safetensors"
file 'a\u001bb' '\0\0\xc0\x7f\0\0\x80\xff' > "$tap_dir/odd.safetensors" # NaN -inf
file 'a\u001bb' '\0\0\xc0\x7f\0\0\x80\x7f' > "$tap_dir/odd2.safetensors"
is "NaN agrees with NaN, and a name is escaped" "$(st-diff --tsv "$tap_dir/odd.safetensors" "$tap_dir/odd2.safetensors")" \
    'a\u001bb	differs	[1,2]	inf	inf	1	1	[0,1]	-inf	inf'
is "infinities in JSON" "$(st-diff --json "$tap_dir/odd.safetensors" "$tap_dir/odd2.safetensors" | grep -o '"max_abs".*')" \
    '"max_abs":"inf","max_rel":"inf","cosine":1,"bad":1,"first_bad":[0,1],"a":"-inf","b":"inf"}'

# A type whose values are not known: the same bytes, and others.
file w '\1\2\3\4\5\6\7\0' | sed 's/"F32","shape":\[1,2\]/"C64","shape":[  1]/' > "$tap_dir/c64.safetensors"
is "complex numbers, the same bytes" "$(st-diff --tsv "$tap_dir/c64.safetensors" "$tap_dir/c64.safetensors")" "w	agrees	[1]	0	0	1	0			"
sed 's/\x07/\x08/' "$tap_dir/c64.safetensors" > "$tap_dir/c64b.safetensors"
is "complex numbers, others" "$(st-diff --tsv "$tap_dir/c64.safetensors" "$tap_dir/c64b.safetensors")" "w	unknown type	[1]							"
file "$(printf 'long%.0s' {1..40})" '\0\0\0\0\0\0\0\0' > "$tap_dir/long.safetensors"
is "a long name widens no other row" "$(st-diff "$a" "$tap_dir/long.safetensors" | head -n 1)" "$(st-diff "$a" "$b" | head -n 1)"

exits "-o" 1 '' st-diff -o "$tap_dir/out" "$a" "$b"
is "-o: the table is there" "$(cat "$tap_dir/out")" "$(st-diff "$a" "$b")"
exits "one operand" 2 'here are 1' st-diff "$a"
exits "three operands" 2 'here are 3' st-diff "$a" "$b" "$a"
exits "a tolerance below 0" 2 '--atol takes' st-diff --atol -1 "$a" "$b"
exits "a tolerance that is none" 2 '--rtol takes' st-diff --rtol nan "$a" "$b"
exits "--map without =" 2 'FROM=TO' st-diff --map w "$a" "$b"
exits "two forms" 2 'only one of' st-diff --tsv --json "$a" "$b"
exits "no such file" 4 'nothing' st-diff "$a" "$tap_dir/nothing"
head -c 40 "$a" > "$tap_dir/cut.safetensors"
exits "a damaged file" 3 "cut.safetensors" st-diff "$a" "$tap_dir/cut.safetensors"
exits "a full disk" 9 'standard output' sh -c "st-diff $a $b > /dev/full"
exits "--help" 0 '' st-diff --help
exits "--version" 0 '' st-diff --version

# What transformers recorded for a prompt, against a trace of it.
field() { sed -E "s/.*\"$2\": \[([^]]*)\].*/\1/; s/,//g" "tests/data/models/$1/golden.json"; }
for name in llama gemma2 gpt2; do
    field $name prompt | nl-forward -m tests/data/models/$name --text --trace "$tap_dir/trace" > "$tap_dir/logits"
    exits "$name: a trace against the golden file" 0 '' st-diff --common "$tap_dir/trace" tests/data/models/$name/golden.safetensors
done
exits "and against another model's" 1 '' st-diff --common "$tap_dir/trace" tests/data/models/llama/golden.safetensors
done_testing
