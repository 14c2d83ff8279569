#!/bin/bash
# What surrounds the programs: odd places for -o, limits, readers that take nothing or are gone, links to nowhere.
# shellcheck source=tests/cli/tap.sh
. "$(dirname "$0")/tap.sh"
m=tests/data/models/llama
unset NL_MODEL NL_ISA NL_DEVICE NL_THREADS
export XDG_CACHE_HOME=$tap_dir/cache
d=$tap_dir/places
mkdir "$d"
echo 5 6 7 > "$tap_dir/p3"
generate() { nl-generate -m $m -n 2 --text "$@" < "$tap_dir/p3"; }
want=$(generate)

# -o: a device or a FIFO is written, never replaced; a link is followed; a file keeps its mode.
mkfifo "$d/fifo"
cat "$d/fifo" > "$tap_dir/through" &
reader=$!
ok "-o FIFO" generate -o "$d/fifo"
ok "-o FIFO: it is still one" test -p "$d/fifo"
[ -p "$d/fifo" ] || kill "$reader"
wait "$reader"
is "-o FIFO: what comes out" "$(cat "$tap_dir/through")" "$want"
if mknod "$d/null" c 1 3 2> /dev/null; then
    generate -o "$d/null"
    ok "-o DEVICE: it is still one" test -c "$d/null"
    rm -f "$d/null"
else
    skip "-o DEVICE" "may not make one"
fi
echo old > "$d/target"
chmod 640 "$d/target"
ln -s target "$d/link"
ok "-o LINK" generate -o "$d/link"
ok "-o LINK: it is still one" test -L "$d/link"
is "-o LINK: its target is written" "$(cat "$d/target")" "$want"
is "-o: a file keeps its mode" "$(stat -c %a "$d/target")" 640
exits "-o ''" 2 "name is empty" generate -o ''
exits "-o FOLDER" 9 "Is a directory" generate -o "$d"
ln -s nowhere "$d/dangling"
exits "-o a link to nowhere" 4 "cannot create: .*dangling" generate -o "$d/dangling"

# A limit on the size of files is an error like a full disk.
limited() { (ulimit -f 0 && exec "$@" < "$tap_dir/p3"); }
limit_status() { # its message goes to a pipe, which no limit holds for
    limited "$@" 2>&1 | cat > "$tap_dir/err"
    echo "${PIPESTATUS[0]} $(cat "$tap_dir/err")"
}
is "ulimit -f: status and message" "$(limit_status nl-generate -m $m -n 2 -o "$d/large")" "9 nl-generate: cannot write: $d/large: File too large"
is "ulimit -f: nothing is left" "$(ls "$d"/large* 2> /dev/null)" ""

# A file that may be absent but is a link to nowhere, or to itself.
cp -r $m "$tap_dir/model"
ln -sf loop.json "$tap_dir/model/loop.json"
for target in nowhere loop.json; do
    ln -sfn $target "$tap_dir/model/generation_config.json"
    exits "generation_config.json is a link to $target" "$([ $target = nowhere ] && echo 4 || echo 9)" "cannot open: .*generation_config.json" \
        nl-generate -m "$tap_dir/model" --text < "$tap_dir/p3"
done
exits "NL_THREADS is no number" 2 "NL_THREADS takes" env NL_THREADS=many nl-generate -m $m --text < "$tap_dir/p3"
cp tests/data/models/llama/config.json "$tap_dir/model"
cat > "$tap_dir/model/tokenizer.json" << 'JSON'
{"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
   {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": false},
   {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}}
JSON
printf '%0100d' 0 | tr 0 a > "$tap_dir/a100"
is "a regex, well matched" "$(nl-tokenize -m "$tap_dir/model" --text < "$tap_dir/a100" | wc -w)" 100
echo b >> "$tap_dir/a100"
exits "a regex that takes 2^n steps" 3 "too many steps" timeout 60 nl-tokenize -m "$tap_dir/model" --text < "$tap_dir/a100"
ln -sf nowhere "$tap_dir/model/tokenizer_config.json"
exits "tokenizer_config.json is a link to nowhere" 4 "tokenizer_config.json" nl-tokenize -m "$tap_dir/model" --text < "$tap_dir/p3"

# A program that waits for input ends when nobody is left to read its output.
rm "$tap_dir/model/tokenizer_config.json"
mkfifo "$d/in" "$d/pipe"
for program in "nl-tokenize --lines -m $tap_dir/model" "nl-generate -m $m" "nl-forward -m $m" nl-sample "nl-detok -m $tap_dir/model"; do
    sleep 20 > "$d/in" &
    feeder=$!
    $program < "$d/in" > "$d/pipe" 2> "$tap_dir/err" &
    victim=$!
    true < "$d/pipe"
    for _ in {1..50}; do
        kill -0 $victim 2> /dev/null || break
        sleep 0.1
    done
    kill -KILL $victim 2> /dev/null
    wait $victim 2> /dev/null
    is "${program%% *} waits for nobody: dies of SIGPIPE" $? 141
    kill $feeder
    wait $feeder 2> /dev/null
done

# A signal ends also a program whose output nobody takes.
yes 'b a' | head -n 500000 > "$tap_dir/text"
nl-tokenize -m "$tap_dir/model" < "$tap_dir/text" > "$tap_dir/ids"
for signal in INT TERM; do
    for program in nl-tokenize nl-detok; do
        sleep 20 3< "$d/pipe" &
        reader=$!
        input=$tap_dir/text
        [ $program = nl-detok ] && input=$tap_dir/ids
        $program -m "$tap_dir/model" < "$input" > "$d/pipe" &
        victim=$!
        sleep 1
        kill -s $signal $victim
        for _ in {1..50}; do
            kill -0 $victim 2> /dev/null || break
            sleep 0.1
        done
        kill -KILL $victim 2> /dev/null
        wait $victim 2> /dev/null
        is "SIG$signal ends $program when its output is blocked" $? $((128 + $(kill -l $signal)))
        kill $reader
        wait $reader 2> /dev/null
    done
done

# The numbers of sequences that have none; what of a session is no stream's.
lines='{"kind":"NLS1"}
{"kind":"TOKS","ids":[5,6]}
{"kind":"DONE","finish":"input"}'
is "sequences without a number are counted" "$(printf '%s\n' "$lines" "$lines" | nl-generate -m $m -n 1 --json | grep -o '"seq":[0-9]*' | tr '\n' ' ')" '"seq":0 "seq":1 '
frame() { printf '%s\0\0\0\0%b\0\0\0\0\0\0\0%b' "$1" "$2" "$3"; }
session() {
    frame NLS1 '\x0d' '{"session":1}'
    frame TOKS '\x10' '\5\0\0\0\6\0\0\0\7\0\0\0\1\0\0\0'
    frame CUTS '\4' '\3\0\0\0'
}
is "CUTS shortens a prompt" "$(session | nl-generate -m $m -n 2 --text)" "$want"
is "the answer to a session is no session" "$(session | nl-generate -m $m -n 2 --json | grep -c '"session"')" 0
# timeout(1) sends its signal twice; the step is finished all the same.
for _ in {1..13}; do seq -s ' ' 1 300; done | tr '\n' ' ' > "$tap_dir/long"
nl-forward -m tests/data/models/llama-long -c 4096 --prefill-chunk 4096 --threads 1 --json < "$tap_dir/long" > "$tap_dir/twice" &
victim=$!
for _ in {1..200}; do
    [ -s "$tap_dir/twice" ] && break
    sleep 0.01
done
kill -TERM $victim
sleep 0.01
kill -TERM $victim
wait $victim 2> /dev/null
is "SIGTERM twice at once is one" "$? $(tail -n 1 "$tap_dir/twice")" '143 {"kind":"DONE","finish":"cancelled"}'
done_testing
