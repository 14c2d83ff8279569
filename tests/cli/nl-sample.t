#!/bin/bash
# nl-sample, fed with streams in their JSON and text twins.
# shellcheck source=tests/cli/tap.sh disable=SC2154
. "${BASH_SOURCE%/*}/tap.sh"
cd "${BASH_SOURCE%/*}/../.." || exit 1

# A stream of JSON lines: seq [KEYS], toks IDS, lgts POSITION LOGITS, done [FINISH].
seq_() { printf '{"kind":"NLS1"%s}\n' "${1+,$1}"; }
toks() { printf '{"kind":"TOKS","ids":[%s]}\n' "$1"; }
lgts() { printf '{"kind":"LGTS","position":%s,"logits":[%s]}\n' "$1" "$2"; }
done_() { printf '{"kind":"DONE","finish":"%s"}\n' "${1:-input}"; }
# Three steps of a loop as nl-forward would answer it: the best ids are 1, 2, 0.
steps() {
    seq_ "$@"
    toks 3,3
    lgts 2 1,4,3,0
    toks 1
    lgts 3 1,2,3,0
    toks 2
    lgts 4 9,2,3,0
    toks 0
    done_
}
ids() { sed -n 's/.*"TOKS","ids":\[\(.*\)\].*/\1/p' | tr '\n' ' '; }
finish() { sed -n 's/.*"finish":"\([a-z]*\)".*/\1/p' | tr '\n' ' '; }

# The examples of the man page that show what they print.
example=
while IFS= read -r line; do
    case $line in
    '$ '*) example=${line#\$ } ;;
    .Ed) example= ;;
    *)
        [ -n "$example" ] || continue
        is "man page: $example" "$(eval "$example" | sed 's/ *$//' | head -1)" "$line"
        ;;
    esac
done < man/nl-sample.1
ok "man page has no faults" mandoc -Tlint -Wwarning man/nl-sample.1
for flag in $(nl-sample --help | grep -oE -e '--[a-z][a-z-]+' | sort -u); do
    grep -qE "Fl -${flag#--}( |\$)" man/nl-sample.1 || missing="${missing-} $flag"
done
is "man page names every option of --help" "${missing-}" ""
is "--version" "$(nl-sample --version)" "nl-sample $(sed -n 's/#define NL_VERSION "\(.*\)"/\1/p' cmd/cli.h)"

# Ends.
is "greedy ids" "$(steps | nl-sample --json | ids)" "1 2 0 "
is "no end but the input's" "$(steps | nl-sample --json | finish)" "input "
is "end id is kept" "$(steps '"eos":[2,9]' | nl-sample --json | tail -2)" \
    '{"kind":"TOKS","ids":[2]}
{"kind":"DONE","finish":"eos","generated":2}'
is "--ignore-eos" "$(steps '"eos":[2]' | nl-sample --json --ignore-eos | ids)" "1 2 0 "
is "--stop-id" "$(steps | nl-sample --json --stop-id 7,2 | ids)" "1 2 "
is "stop" "$(steps | nl-sample --json --stop-id 7 --stop-id 2 | finish)" "stop "
is "-n" "$(steps | nl-sample --json -n 2 | tail -1)" '{"kind":"DONE","finish":"length","generated":2}'
is "-n 0" "$(steps | nl-sample --json -n 0 | ids)" ""
is "-n 0 is length" "$(steps | nl-sample --json -n 0 | finish)" "length "
is "one id without feedback" "$( (seq_; toks 5; lgts 1 0,1; done_) | nl-sample --json | ids)" "1 "
is "context is passed on" "$( (seq_; toks 5; lgts 1 0,1; done_ context) | nl-sample --json | finish)" "context "
is "sequences follow each other" "$( (steps; steps) | nl-sample --json -n 1 | ids)" "1 1 "
is "keys of NLS1 are kept, generation is not" \
    "$(steps '"seq":7,"x":[1],"generation":{"suppress_tokens":[1]}' | nl-sample --json | head -2)" \
    '{"kind":"NLS1","seq":7,"x":[1]}
{"kind":"TOKS","ids":[2]}'
is "text out" "$( (steps; steps) | nl-sample --text -n 2 | sed 's/ *$//')" $'1 2\n1 2'
is "binary in and out" "$( (steps; steps) | nl-sample --logits | nl-sample | nl-sample --json --logits | ids)" "1 2 0 1 2 0 "

# Processors.
is "generation is applied" "$(steps '"generation":{"repetition_penalty":3.0}' | nl-sample --json | ids)" "1 2 0 "
is "the prompt counts" "$( (seq_ '"generation":{"repetition_penalty":3.0}'; toks 1; lgts 1 2,3; done_) | nl-sample --json | ids)" "0 "
is "each sequence has its own history" \
    "$( (seq_; toks 1,1; lgts 2 2,3; done_; seq_; toks 0; lgts 1 2,3; done_) | nl-sample --json --repetition-penalty 3 | ids)" "0 1 "
is "a flag replaces its namesake" \
    "$( (seq_ '"generation":{"repetition_penalty":3.0}'; toks 1; lgts 1 2,3; done_) | nl-sample --json --repetition-penalty 1 | ids)" "1 "
is "--ignore-generation" \
    "$( (seq_ '"generation":{"num_beams":3}'; toks 1; lgts 1 2,3; done_) | nl-sample --json --ignore-generation | ids)" "1 "
is "min-new-tokens" "$(steps '"eos":[1]' | nl-sample --json --min-new-tokens 1 | ids)" "2 2 0 "
is "forced last id" "$(steps | nl-sample --json -n 2 --forced-eos-token-id 3 | ids)" "1 3 "
is "the order given is kept" "$( (seq_; toks 1; lgts 1 3,2,1,0; done_) |
    nl-sample --json --logits --min-p 0.3 --temperature 2 | grep LGTS)" '{"kind":"LGTS","position":1,"logits":[1.5,1,"-inf","-inf"]}'
is "the other order" "$( (seq_; toks 1; lgts 1 3,2,1,0; done_) |
    nl-sample --json --logits --temperature 2 --min-p 0.3 | grep LGTS)" '{"kind":"LGTS","position":1,"logits":[1.5,1,0.5,"-inf"]}'
row() { seq_; toks 1; printf '{"kind":"LGTK","position":1,"ids":[9,2,5],"logits":[3,2,1]}\n'; done_; }
is "sparse row" "$(row | nl-sample --json | ids)" "9 "
is "sparse row, ids past it" "$(row | nl-sample --json --logits --top-k 2 --bad-words-ids 700 | grep LGTK)" \
    '{"kind":"LGTK","position":1,"ids":[2,9],"logits":[2,3]}'
exits "sparse row, absurd id" 3 'id too large' nl-sample --json < <(seq_; toks 1
    printf '{"kind":"LGTK","position":1,"ids":[4294967295],"logits":[3]}\n'; done_)

# Filter.
all() {
    seq_ '"seq":0,"generation":{"suppress_tokens":[1]}'
    toks 3
    printf '{"kind":"note","a":1}\n'
    lgts 1 1,2
    printf '{"kind":"meta","b":2}\n{"kind":"DONE","finish":"input","time":1}\n'
}
is "the filter passes on everything" "$(all | nl-sample --json --logits)" '{"kind":"NLS1","seq":0}
{"kind":"TOKS","ids":[3]}
{"kind":"note","a":1}
{"kind":"LGTS","position":1,"logits":[1,"-inf"]}
{"kind":"meta","b":2}
{"kind":"DONE","finish":"input","time":1}'
is "the sampler does not" "$(all | nl-sample --json)" '{"kind":"NLS1","seq":0}
{"kind":"TOKS","ids":[0]}
{"kind":"DONE","finish":"input","time":1,"generated":1}'
is "filters in a row" "$(steps | nl-sample --logits --suppress-tokens 1 | nl-sample --logits --suppress-tokens 2 | nl-sample --json | ids)" "0 0 0 "

# Draws.
draws() { (for seq in 0 1; do seq_ "\"seq\":$seq"; for p in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do toks 3; lgts $p 0,0,0,0,0,0,0,0; done; done_; done) |
    nl-sample --json "$@"; }
draws --top-k 8 > "$tap_dir/first"
seed=$(sed -n 's/.*"seed":\([0-9]*\).*/\1/p' "$tap_dir/first" | head -1)
is "the reported seed gives the same ids" "$(draws --top-k 8 --seed "$seed" | ids)" "$(ids < "$tap_dir/first")"
# The ids are floor(8 u), u from an independent Philox4x32-10 in Python.
is "seed 1, ever the same" "$(draws --temperature 1 --seed 1 | ids)" "5 1 6 1 1 3 3 6 1 2 4 3 3 6 3 4 1 3 3 0 1 5 0 0 1 3 2 5 4 2 3 4 "
ok "another seed, other ids" [ "$(draws --temperature 1 --seed 2 | ids)" != "$(draws --temperature 1 --seed 1 | ids)" ]
is "--temperature 0 draws nothing" "$(draws --top-k 8 --temperature 0 | ids)" "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "

# Text.
is "a line for a sequence" "$(printf '3 0:1 1:2\n4 5:1 1:-inf\n\n1 6:0\n' | nl-sample --text | sed 's/ *$//')" $'1 5\n6'
exits "no history in text" 2 'repetition_penalty' nl-sample --repetition-penalty 2 < <(printf '3 0:1 1:2\n')
printf '{"eos_token_id":[5,6],"bos_token_id":1,"no_repeat_ngram_size":0,"min_new_tokens":1}' > "$tap_dir/generation_config.json"
is "-m gives end ids and processors" "$(printf '3 0:1 5:2\n4 5:1\n5 0:3\n' | nl-sample --text -m "$tap_dir" | sed 's/ *$//')" "0 5"
is "NL_MODEL does too" "$(printf '3 0:1 5:2\n4 5:1\n5 0:3\n' | NL_MODEL=$tap_dir nl-sample --text | sed 's/ *$//')" "0 5"
printf '{"repetition_penalty":2}' > "$tap_dir/generation_config.json"
exits "no history for the model's processors either" 2 'repetition_penalty' nl-sample -m "$tap_dir" < <(printf '3 0:1 1:2\n')
exits "no such model" 4 '/nowhere' nl-sample -m /nowhere < /dev/null

# Faults.
exits "a good stream" 0 '' nl-sample < <(steps)
exits "unsupported generation" 5 'num_beams' nl-sample --json < <(steps '"generation":{"num_beams":4}'; steps)
is "the next sequence goes on" "$(cat "$tap_dir/out")" "$(nl-sample --json < <(seq_) 2> /dev/null | head -1)
{\"kind\":\"DONE\",\"finish\":\"error\",\"code\":5,\"error\":\"the model's generation_config asks for what is not supported: num_beams\"}
$(steps | nl-sample --json)"
exits "malformed generation" 3 'min_length' nl-sample < <(steps '"generation":{"min_length":"x"}')
exits "malformed eos" 3 'eos' nl-sample < <(steps '"eos":["x"]')
exits "NaN" 3 'NaN in the logits: id 1 after 1 ids' nl-sample --json < <(seq_; toks 1; lgts 1 '0,"nan"'; done_)
is "NaN ends the sequence" "$(finish < "$tap_dir/out")" "error "
exits "nothing to choose" 3 'no id is left' nl-sample < <(seq_; toks 1; lgts 1 '"-inf"'; done_)
exits "nothing left" 3 'suppress_tokens' nl-sample --suppress-tokens 0,1 < <(seq_; toks 1; lgts 1 0,1; done_)
exits "logits of ids that did not come" 3 'position 7 after only 1' nl-sample --no-repeat-ngram-size 2 < <(seq_; toks 1; lgts 7 0,1; done_)
exits "no byte" 8 'empty' nl-sample < /dev/null
exits "cut short" 8 'cut short' nl-sample --json < <(steps | head -6)
is "what came is written, then FAIL" "$(sed 's/"code.*//' "$tap_dir/out" | tail -2)" '{"kind":"TOKS","ids":[2]}
{"kind":"FAIL",'
exits "FAIL is passed on in silence" 8 '' nl-sample --json < <(steps | head -3; printf '{"kind":"FAIL","error":"x","code":6}\n')
is "FAIL passed on" "$(tail -1 "$tap_dir/out")" '{"kind":"FAIL","error":"x","code":6}'
exits "a failed sequence is passed on in silence" 8 '' nl-sample --json < <(seq_; toks 1
    printf '{"kind":"DONE","finish":"error","code":7,"error":"y"}\n'; steps)
is "and the next goes on" "$(finish < "$tap_dir/out")$(ids < "$tap_dir/out")" "error input 1 2 0 "
exits "no stream" 3 'neither' nl-sample < <(echo hello)
exits "malformed logits" 3 'line 2' nl-sample < <(seq_; printf '{"kind":"LGTS","position":1,"logits":["x"]}\n')

# Options.
exits "unknown processor" 2 'mirostat' nl-sample --mirostat 2
exits "bad value" 2 'top_p takes a number from 0 to 1' nl-sample --top-p 2
exits "operand" 2 'no operand' nl-sample file
exits "-n with --logits" 2 '--logits' nl-sample --logits -n 3
exits "--top without --logits --text" 2 '--top' nl-sample --top 3 --text
exits "-v sums up" 0 'nl-sample: 1 sequences, 3 ids' nl-sample -v < <(steps)

# Input and output.
exits "full disk" 9 'cannot write' bash -c 'nl-sample > /dev/full' < <(steps)
exits "closed input" 9 'standard input' bash -c 'nl-sample <&-'
exits "-o" 0 '' nl-sample --json -o "$tap_dir/new" < <(steps)
is "-o FILE" "$(ids < "$tap_dir/new")" "1 2 0 "
exits "-o, cut short" 8 'cut short' nl-sample -o "$tap_dir/half" < <(steps | head -3)
is "leaves nothing" "$(echo "$tap_dir"/half*)" "$tap_dir/half*"
exits "-o, FAIL" 8 '' nl-sample -o "$tap_dir/half" < <(steps | head -3; printf '{"kind":"FAIL","error":"x","code":6}\n')
is "leaves nothing either" "$(echo "$tap_dir"/half*)" "$tap_dir/half*"

# Each id before the next row.
mkfifo "$tap_dir/in" "$tap_dir/out.fifo"
nl-sample --json < "$tap_dir/in" > "$tap_dir/out.fifo" 2> "$tap_dir/log" &
pid=$!
exec 3> "$tap_dir/in" 4< "$tap_dir/out.fifo"
steps | head -3 >&3
read -r -t 5 line <&4
read -r -t 5 line <&4
is "an id is out before the next row is in" "$line" '{"kind":"TOKS","ids":[1]}'
kill -TERM $pid
read -r -t 2 line <&4
is "SIGTERM: cancelled" "$line" '{"kind":"DONE","finish":"cancelled","generated":1}'
wait $pid
is "died by the signal" $? 143
exec 3>&- 4<&-
nl-sample --json < "$tap_dir/in" > "$tap_dir/out.fifo" 2> "$tap_dir/log" &
pid=$!
exec 3> "$tap_dir/in" 4< "$tap_dir/out.fifo"
steps | head -3 >&3
read -r -t 5 line <&4
exec 4<&-
start=$SECONDS
for _ in $(seq 100); do kill -0 $pid 2> /dev/null && sleep 0.1; done
kill -KILL $pid 2> /dev/null
wait $pid
is "a dead reader ends it quietly while it waits" "$?$(cat "$tap_dir/log")" 141
ok "within a second or two" [ $((SECONDS - start)) -le 2 ]
exec 3>&-
done_testing
