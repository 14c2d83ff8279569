# suspect.awk: reads st-diff --tsv of two traces, ours and the reference's, and prints "VERDICT<tab>TEXT": ok, or FAIL with
# the first tensor that differs, where, and what part of the model to suspect.
#
# A tensor that differs while everything it is computed from agrees is the culprit. Within attention the index tells more:
# query head 0 uses key-value head 0 however heads are shared, so a fault of sharing shows first in another head, and a
# fault of mask or scale in head 0 too; a scale shows from the second position on, a window only past its length.
BEGIN { FS = "\t" }

function bad(name) { return name in first }
# The index INDEX of "[3,0,1]" as at[1], at[2], ...; returns how many.
function indexes(text) { gsub(/[][]/, "", text); return split(text, at, ",") }

{
    n++
    if ($4 + 0 > worst && $2 == "agrees") { worst = $4 + 0; worst_name = $1 }
    if ($2 != "agrees" && $2 != "differs" && other == "") other = $1 " is " $2
    if ($2 != "agrees") {
        n_bad++
        if (culprit == "") { culprit = $1; place = $8; ours = $9; theirs = $10 }
        first[$1] = 1
    }
}

function in_layer(part, layer,    head, row, masked) {
    if (part == "q" || part == "k" || part == "v") {
        layer = "layers." layer "."
        if (bad(layer "q") && bad(layer "k") && bad(layer "v")) return "norm before attention, or the q, k and v products and their biases"
        if (part == "v") return "the v product or its bias"
        return "the product, bias or norm of " (bad(layer "q") ? bad(layer "k") ? "q and k" : "q" : "k")
    }
    if (part == "q_rope" || part == "k_rope") return "RoPE: q and k agree before it, v agrees; the pairing of dimensions, the frequencies or the positions"
    if (part == "attention" || part == "heads") {
        indexes(place)
        head = part == "attention" ? at[1] : at[2]
        row = part == "attention" ? at[2] : at[1]
        masked = part == "attention" && (ours + 0 == 0 || theirs + 0 == 0)
        if (head > 0) return "GQA: which key-value head a query head uses"
        if (masked || row == 0) return "mask: causal, or the window"
        if (row > 1) return "mask: the window; this is the first position that it cuts"
        return "scale or soft-cap of the scores, or the mask"
    }
    if (part == "attention_output") return "the output product of attention or its bias"
    if (part == "mlp_output") return "the norm before or after, the MLP's gate and up, activation, or biases"
    return "an operation after it"
}

function suspect(name,    words) {
    split(name, words, ".")
    if (other != "") return "the number of layers, or another size: " other
    if (name == "ids") return "the prompt"
    if (name == "hidden_states.0") return "the embedding: its scale, or learned positions"
    if (words[1] == "hidden_states" && !("layers." words[2] ".q" in known)) return "the final norm, or the norm or scale of a residual branch"
    if (words[1] == "hidden_states") return "the norm or scale of a residual branch"
    if (words[1] == "layers") return in_layer(words[3], words[2])
    if (name == "logits") return "the head, the soft-cap or the scale of the logits"
    return "unknown"
}

{ known[$1] = 1 }

END {
    if (!n) print "FAIL\tno trace"
    else if (!n_bad) printf "ok\t%d tensors agree, the farthest is %s by %.2g\n", n, worst_name, worst
    else printf "FAIL\t%d of %d tensors differ, the first is %s%s; suspect: %s\n", n_bad, n, culprit, \
        (place == "" ? "" : " at " place ": " ours " for " theirs), suspect(culprit)
}
