#!/bin/bash
# st-inspect: verdicts, outputs, exit statuses.
# shellcheck source=tests/cli/tap.sh
. "${0%/*}/tap.sh"
data=tests/data
cases=$data/safetensors

# The official library's verdict on each file; 0 and no output, or 1 and at least one line that names the file.
wrong=
count=0
for file in "$cases"/*.safetensors; do
    name=${file##*/}
    valid=$(grep -F "\"file\": \"$name\"" "$cases/cases.jsonl" | grep -o '"valid": [a-z]*')
    [ "$name" = dup_tensor_same.safetensors ] && valid='"valid": false' # DEVIATIONS.md
    st-inspect --check "$file" > "$tap_dir/out" 2> "$tap_dir/err"
    status=$?
    count=$((count + 1))
    case $valid in
    *true) [ $status -eq 0 ] && [ ! -s "$tap_dir/out" ] && [ ! -s "$tap_dir/err" ] ;;
    *false) [ $status -eq 1 ] && grep -qF "$name: " "$tap_dir/out" && [ ! -s "$tap_dir/err" ] ;;
    *) false ;;
    esac || wrong="$wrong $name"
done
is "--check gives the official verdict" "$wrong" ""
is "on every file" "$count" 86

# Without --check: 0 or 3, and the JSON of what is valid is JSON.
wrong=
for file in "$cases"/*.safetensors; do
    st-inspect --check -q "$file"
    checked=$?
    for mode in '' --tsv --json --metadata --offsets; do
        # shellcheck disable=SC2086 # no mode is no argument
        st-inspect $mode "$file" > "$tap_dir/out" 2> "$tap_dir/err"
        case $?:$checked in
        0:0) [ ! -s "$tap_dir/err" ] ;;
        3:1) [ ! -s "$tap_dir/out" ] && [ "$(wc -l < "$tap_dir/err")" -eq 1 ] && grep -qF "$file" "$tap_dir/err" ;;
        *) false ;;
        esac || wrong="$wrong $mode:${file##*/}"
        LC_ALL=C grep -q "$(printf '[\001-\010\013-\037]')" "$tap_dir/out" "$tap_dir/err" && wrong="$wrong control:${file##*/}"
    done
done
is "every mode on every file" "$wrong" ""

for folder in whole single stray_file stray_model no_total_size extra_tensor lost_tensor; do
    exits "checks well: $folder" 0 '' st-inspect --check "$data/index/$folder"
done
for folder in missing_shard missing_all truncated_shard empty_shard parent_path index_not_json index_no_map \
    index_map_number stale_index corrupt_shard; do
    exits "--check finds the fault: $folder" 1 '' st-inspect --check "$data/index/$folder"
    ok "and names it" grep -q "^$data/index/$folder/" "$tap_dir/out"
done
exits "a missing shard is 4" 4 'shard is missing: .*model-00002-of-00002' st-inspect "$data/index/missing_shard"
exits "a truncated shard is 3" 3 'cut short.*model-00002-of-00002' st-inspect "$data/index/truncated_shard"
exits "a shard outside the folder is refused" 3 "'../outside.safetensors'" st-inspect "$data/index/parent_path"
exits "a folder without weights is 4" 4 'neither model.safetensors nor' st-inspect tests/cli
exits "the same with --check" 4 'neither model.safetensors nor' st-inspect --check tests/cli
exits "the same with --header" 4 'neither model.safetensors nor' st-inspect --header tests/cli
exits "no such file is 4" 4 'cannot open: nowhere.safetensors: No such file' st-inspect nowhere.safetensors
exits "no such model is 4" 4 'hf download nobody/nothing' \
    env HF_HUB_CACHE="$tap_dir" st-inspect nobody/nothing
exits "not a regular file" 3 'not a regular file: /dev/null' st-inspect /dev/null

commit=0123456789abcdef0123456789abcdef01234567
mkdir -p "$tap_dir/models--org--name/snapshots/$commit" "$tap_dir/models--org--name/refs"
printf %s $commit > "$tap_dir/models--org--name/refs/main"
cp "$data/index/single/model.safetensors" "$tap_dir/models--org--name/snapshots/$commit/"
exits "a model of the cache" 0 '' env HF_HUB_CACHE="$tap_dir" st-inspect --check org/name

cp "$cases/ok_basic.safetensors" "$tap_dir/unreadable.safetensors"
chmod 0 "$tap_dir/unreadable.safetensors"
as_nobody=()
if [ "$(id -u)" = 0 ]; then # root reads everything
    as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    chmod 755 "$tap_dir"
fi
cp "$(command -v st-inspect)" "$tap_dir/st-inspect"
exits "an unreadable file is 9" 9 'Permission denied' "${as_nobody[@]}" "$tap_dir/st-inspect" "$tap_dir/unreadable.safetensors"
exits "standard output full is 9" 9 'cannot write: standard output: No space left' \
    sh -c "exec st-inspect $cases/ok_basic.safetensors > /dev/full"
exits "the same with --check" 9 'cannot write' \
    sh -c "exec st-inspect --check $cases/trailing_bytes.safetensors > /dev/full"
exits "standard output closed is 9" 9 'standard output is closed' \
    sh -c "exec st-inspect $cases/ok_basic.safetensors >&-"

exits "no path is 2" 2 'no path given; try' st-inspect
exits "two modes are 2" 2 'only one of' st-inspect --tsv --json "$cases/ok_basic.safetensors"
exits "an unknown option is 2" 2 'unknown option.*: --nonsense' st-inspect --nonsense x
exits "an unknown letter is 2" 2 'unknown option.*: -Z' st-inspect -qZ x
exits "--human elsewhere is 2" 2 '--human' st-inspect --json -H "$cases/ok_basic.safetensors"
is "--version" "$(st-inspect --version)" "st-inspect $(sed -n 's/^VERSION = //p' Makefile)"
ok "--help on standard output" sh -c 'st-inspect --help | grep -q ^usage'

is "--tsv" "$(st-inspect --tsv "$cases/ok_basic.safetensors")" \
    "$(printf 'a\tF32\t[2,2]\t4\t16\t120\t%s\nb\tI64\t[1]\t1\t8\t136\t%s' "$cases"/ok_basic.safetensors{,})"
is "--tsv escapes" "$(st-inspect --tsv "$cases/name_nul.safetensors" | cut -f 1)" "$(printf 'w\nw\\u0000x')"
is "--header is verbatim" "$(st-inspect --header "$cases/pad_spaces.safetensors" | od -c)" \
    "$(tail -c +9 "$cases/pad_spaces.safetensors" | head -c 56 | od -c)"
is "--header of a damaged header" "$(st-inspect --header "$cases/not_json.safetensors")" \
    "$(tail -c +9 "$cases/not_json.safetensors")"
is "--header of two shards is two lines" "$(st-inspect --header "$data/index/whole" | wc -l)" 2
is "two paths say whose each is" "$(st-inspect --metadata "$cases"/meta_last.safetensors{,} | wc -l)" 2

# Natural order, and names that would break a line.
write_st() { # FILE HEADER DATA_BYTES
    printf '%b\0\0\0\0\0\0%s' "$(printf '\\0%o\\0%o' $((${#2} & 255)) $((${#2} >> 8)))" "$2" > "$1"
    head -c "$3" /dev/zero >> "$1"
}
entry() { printf '"%s":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}' "$1" "$2" $(($2 + 1)); }
write_st "$tap_dir/order.safetensors" \
    "{$(entry l.10.x 0),$(entry l.2.x 1),$(entry l.1.x 2),$(entry 'a\nb\t\u001b[31m\\\"' 3)}" 4
names=$(printf '%s\n' 'a\u000ab\u0009\u001b[31m\\"' l.1.x l.2.x l.10.x)
is "natural order, one line a name" "$(st-inspect --tsv "$tap_dir/order.safetensors" | cut -f 1)" "$names"
is "the same in the table" "$(st-inspect "$tap_dir/order.safetensors" | awk 'NR > 1 && NR < 6 { print $4 }')" "$names"
if command -v python3 > /dev/null; then
    cp "$tap_dir/order.safetensors" "$tap_dir/$(printf 'we\tird\377"name\303\274.safetensors')"
    ok "--json is JSON, whatever the names" python3 -c '
import json, subprocess, sys
for path in sys.argv[1:]:
    if subprocess.run([b"st-inspect", b"--check", b"-q", path.encode("utf-8", "surrogateescape")]).returncode:
        continue
    text = subprocess.run(["st-inspect", "--json", path.encode("utf-8", "surrogateescape")], capture_output=True, check=True).stdout
    value = json.loads(text.decode("utf-8"))
    with open(path, "rb") as file:
        raw = file.read()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    assert value["files"][0]["metadata"] == header.pop("__metadata__", None)
    assert value["files"][0]["size"] == len(raw) and value["files"][0]["header_size"] == size
    assert {t["name"]: t["shape"] for t in value["tensors"]} == {k: v["shape"] for k, v in header.items()}
    for tensor in value["tensors"]:
        begin, end = header[tensor["name"]]["data_offsets"]
        assert tensor["data_offsets"] == [begin, end]
        assert tensor["offset"] == 8 + size + begin and tensor["bytes"] == end - begin
    assert value["totals"]["tensors"] == len(header)
    assert value["totals"]["bytes"] == len(raw) - 8 - size
' "$cases"/*.safetensors "$tap_dir"/*.safetensors
else
    skip "--json is JSON, whatever the names" "no python3"
fi

# The header only is read: 100 GB that are not there.
size=$((100 << 30))
header="{\"big\":{\"dtype\":\"F32\",\"shape\":[$((size / 4))],\"data_offsets\":[0,$size]}}"
write_st "$tap_dir/huge.safetensors" "$header" 0
if truncate -s $((8 + ${#header} + size)) "$tap_dir/huge.safetensors" 2> /dev/null; then
    exits "100 GB are checked" 0 '' timeout 2 st-inspect --check "$tap_dir/huge.safetensors"
    is "and listed" "$(st-inspect -H "$tap_dir/huge.safetensors" | tail -n 1)" \
        "all                1       26.8G   100.0GiB"
    truncate -s -1 "$tap_dir/huge.safetensors"
    exits "one byte less is a fault" 1 '' st-inspect --check "$tap_dir/huge.safetensors"
else
    skip "100 GB are checked" "no room for a sparse file"
fi
# A length that is possible only because the file is sparse: nothing of that size is allocated for it.
printf '\0\340\365\5\0\0\0\0' > "$tap_dir/claims.safetensors" # 99,999,744
truncate -s 100000000 "$tap_dir/claims.safetensors"
built=${B:-build}
case ${built##*/} in
build-*) limit=unlimited ;; # a sanitiser reserves more than this for itself
*) limit=200000 ;;
esac
exits "a header of zeros" 3 "does not begin with '{'" \
    bash -c "ulimit -v $limit; exec st-inspect $tap_dir/claims.safetensors"

exits "-o writes a file" 0 '' st-inspect --tsv -o "$tap_dir/table" "$cases/ok_basic.safetensors"
is "which holds it" "$(cat "$tap_dir/table")" "$(st-inspect --tsv "$cases/ok_basic.safetensors")"
exits "-o after a failure" 3 'trailing comma' st-inspect -o "$tap_dir/none" "$cases/trailing_comma.safetensors"
is "leaves nothing" "$(echo "$tap_dir"/none*)" "$tap_dir/none*"
exits "the first failure decides, the rest is done" 4 'nowhere' \
    st-inspect --tsv nowhere.safetensors "$cases/ok_basic.safetensors" "$cases/trailing_comma.safetensors"
is "the rest" "$(wc -l < "$tap_dir/out")" 2
exits "--check -v names what is sound" 0 'no fault: .*ok_basic' st-inspect --check -v "$cases/ok_basic.safetensors"
exits "a reader that goes away" 0 '' bash -c "st-inspect --tsv $data/index/whole | head -n 1 > /dev/null"

# Values.
is "--values" "$(st-inspect --values --tsv "$data/safetensors/ok_basic.safetensors" | cut -f 1-6)" \
    "$(printf 'a\tF32\t[2,2]\t4\t0\t0\nb\tI64\t[1]\t1\t0\t0')"
header='{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}}'
write_st "$tap_dir/values.safetensors" "$header" 0
# 1, -2, 4, 0.5; 1, NaN, -inf
printf '\0\0\200\077\0\0\0\300\0\0\200\100\0\0\0\077\200\077\300\177\200\377' >> "$tap_dir/values.safetensors"
exits "NaN and infinities are a negative answer" 1 '' st-inspect --values "$tap_dir/values.safetensors"
is "the table" "$(sed 's/  */ /g' "$tap_dir/out")" "dtype NaN infinite min max mean name
F32 0 0 -2 4 0.875 a
BF16 1 1 1 1 1 b"
is "--tsv" "$(st-inspect --values --tsv "$tap_dir/values.safetensors")" \
    "$(printf 'a\tF32\t[2,2]\t4\t0\t0\t-2\t4\t0.875\nb\tBF16\t[3]\t3\t1\t1\t1\t1\t1')"
is "--json" "$(st-inspect --values --json "$tap_dir/values.safetensors")" \
    '{"path":"'"$tap_dir"'/values.safetensors","tensors":[{"name":"a","dtype":"F32","shape":[2,2],"elements":4,"nan":0,"infinite":0,"min":-2,"max":4,"mean":0.875},{"name":"b","dtype":"BF16","shape":[3],"elements":3,"nan":1,"infinite":1,"min":1,"max":1,"mean":1}]}'
is "no values at all" "$(st-inspect --values --tsv "$data/safetensors/empty_zero_first.safetensors" | cut -f 5- | grep -e - | head -n 1)" "0	0	-	-	-"
wrong=
for file in "$cases"/*.safetensors; do
    st-inspect --check -q "$file" || continue
    for form in "" --tsv --json; do
        # shellcheck disable=SC2086 # no form is no argument
        st-inspect --values $form "$file" > "$tap_dir/out" 2> "$tap_dir/err"
        [ $? -le 1 ] && [ ! -s "$tap_dir/err" ] || wrong="$wrong $form:${file##*/}"
    done
done
is "--values on every valid file" "$wrong" ""
exits "--values has three forms" 2 '--values goes with' st-inspect --values --check "$tap_dir/values.safetensors"

# The model of a folder.
fact() { awk -v key="$1" '$1 == key { print $2 }' "$tap_dir/out"; }
exits "--summary" 0 '' st-inspect --summary "$data/models/llama"
is "architecture, layers, heads" "$(fact architecture) $(fact layers) $(fact heads) $(fact kv_heads) $(fact head_dim)" "LlamaForCausalLM 3 6 2 12"
is "bytes a position" "$(fact kv_bytes_per_token) $(fact kv_bytes_per_token_16bit) $(fact kv_times_smaller)" "576 288 3"
is "of the whole context" "$(fact context) $(fact kv_bytes)" "256 147456"
is "all memory is the sum" "$(fact memory_bytes)" $(($(fact weight_bytes) + $(fact kv_bytes) + $(fact activation_bytes)))
is "weights" "$(fact weight_bytes)" "$(st-inspect --tsv "$data/models/llama" | awk '{ sum += $5 } END { print sum }')"
exits "--context" 0 '' st-inspect --summary -c 257 "$data/models/llama"
is "in whole blocks" "$(fact context) $(fact kv_bytes)" "257 184320"
exits "a context beyond all memory is a number too" 0 '' st-inspect --summary -c 2147483647 "$data/models/llama"
exits "sliding layers" 0 '' st-inspect --summary "$data/models/gemma3"
is "and their window" "$(fact sliding_layers)" "$(grep -c '"sliding_attention",*$' "$data/models/gemma3/config.json")"
is "the table of a folder ends with it" "$(st-inspect "$data/models/llama" | tail -n 21)" "$(st-inspect --summary "$data/models/llama")"
is "a file has none" "$(st-inspect "$data/models/llama/model.safetensors" | grep -c architecture)" 0
if command -v python3 > /dev/null; then
    ok "--json has it" sh -c "st-inspect --json $data/models/llama | python3 -c '
import json, sys
model = json.load(sys.stdin)[\"model\"]
assert model[\"heads\"] == 6 and model[\"kv_bytes_per_token\"] == 576 and model[\"tied_embeddings\"] is False'"
    ok "of a file: null" sh -c "st-inspect --json $data/models/llama/model.safetensors | grep -q '\"model\":null}'"
else
    skip "--json has it" "no python3"
fi
mkdir "$tap_dir/other" "$tap_dir/bare"
cp "$data/models/llama/model.safetensors" "$tap_dir/other"
cp "$data/models/llama/model.safetensors" "$tap_dir/bare"
sed 's/LlamaForCausalLM/OtherForCausalLM/' "$data/models/llama/config.json" > "$tap_dir/other/config.json"
exits "another architecture: the table all the same" 0 '' st-inspect "$tap_dir/other"
is "and why there is no summary" "$(tail -n 1 "$tap_dir/out" | grep -c '^no summary of the model: unsupported architecture.*Other')" 1
exits "--summary of it" 5 'unsupported architecture.*OtherForCausalLM' st-inspect --summary "$tap_dir/other"
exits "no config.json: the table" 0 '' st-inspect "$tap_dir/bare"
is "and no word about it" "$(grep -c summary "$tap_dir/out")" 0
exits "--summary without config.json" 4 'config.json' st-inspect --summary "$tap_dir/bare"
exits "--summary of a file" 2 'model folder' st-inspect --summary "$tap_dir/bare/model.safetensors"

if [ -n "${NL_SHARED:-}" ] && [ -d "$NL_SHARED/cases/index" ]; then
    ok "the copies are the shared cases" diff -r "$NL_SHARED/cases/safetensors" "$cases"
else
    skip "the copies are the shared cases" "no shared test data"
fi
done_testing
