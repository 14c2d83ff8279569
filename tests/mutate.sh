#!/bin/bash
# mutate.sh [-n] [NAME...]: proves that the tests can fail. Each mutation is a likely mistake, made by sed in a copy of the tree,
# alone; the tests named with it have to turn red, and where one is named, verify.sh's suspect has to be the right one.
# Prints a line for each; status 1 when one was not found. Takes some minutes; what is built is kept in the copy between
# mutations. $B: a finished build folder to begin from, default build. -n: only whether each can still be made.
set -u
cd "$(dirname "$0")/.." || exit 1
dry=
[ "${1:-}" != -n ] || { dry=yes && shift; }
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
build=${B:-build}
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -p -t "$copy" || exit 1
if [ -z "$dry" ] && [ -d "$build/obj" ]; then # with the times of the files, so that little is built anew
    mkdir "$copy/build"
    cp -rp "$build/obj" "$build/bin" "$build/libnl.a" "$copy/build/"
fi
cd "$copy" || exit 1
unset NL_ISA NL_MODEL NL_SHARED MAKEFLAGS
export DEPS=no
failed=0 ran=0

built() { # TEST [FILE]: the first word is the program
    local emulation=()
    [ -z "$dry" ] || return 0
    [[ $1 == test_cuda* || ${2:-} == kernels/cuda* ]] && emulation=(build/libnl_cuda_emu.so)
    make -s -j2 CUDA=no all "build/tests/${1%% *}" "${emulation[@]}" > build.log 2>&1 || { tail -n 5 build.log && return 1; }
}
# shellcheck disable=SC2086 # a test is a program and its arguments
passes() { [ -n "$dry" ] || (timeout 600 build/tests/$1) > test.log 2>&1; } 2> /dev/null

# mutate NAME FILE SED TEST [MODEL SUSPECT [ISA]]: SED changes FILE; TEST has to fail; verify.sh on MODEL has to say SUSPECT.
mutate() {
    local name=$1 file=$2 script=$3 test=$4 model=${5:-} suspect=${6:-} isa=${7:-} said verdict
    [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " == *" $name "* ]] || return 0
    ran=$((ran + 1))
    cp -p "$file" original
    sed -i -E "$script" "$file"
    if cmp -s original "$file"; then
        verdict="NOT MADE: the pattern is not in $file" model=
        failed=1
    elif [ -n "$dry" ]; then
        verdict=made model=
    elif ! built "$test" "$file"; then
        verdict="NOT BUILT"
        failed=1
    elif passes "$test"; then
        verdict="NOT FOUND by $test"
        failed=1
    else
        verdict="red: $test, $(sed -nE 's/^ *([0-9]+) FAILED TEST.*/\1/p' test.log | grep . || echo it) failed"
    fi
    if [ -n "$model" ]; then
        said=$(NL_ISA=$isa B=build tests/verify.sh "tests/data/models/$model" "tests/data/verify/$model" | sed -n 's/^trace  *//p')
        case $said in
        *"suspect: $suspect"*) verdict="$verdict; suspected: $suspect" ;;
        *)
            verdict="$verdict; WRONG SUSPECT: $said"
            failed=1
            ;;
        esac
    fi
    cp original "$file" # newer than what was built from the mutation
    [ "$verdict" = made ] || printf '%-28s %s\n' "$name" "$verdict"
}

wanted=("$@")
built test_golden && built test_rotation || exit 1
mutate rope-interleaved kernels/cpu_vector.h \
    's/b = head\[i \+ half\];/b = head[2 * i + 1];/; s/float a = head\[i\]/float a = head[2 * i]/; s/head\[i\] = a \*/head[2 * i] = a */; s/head\[i \+ half\] = b/head[2 * i + 1] = b/' \
    test_golden llama RoPE
mutate window-off-by-one kernels/cpu.h 's/(position < window \? 0 : position) \+ 1 - window/\1 - window/' \
    test_golden mistral-window mask
mutate window-off-by-one-in-plan lib/model.c 's/(window = c->windows\[b->layer\])/\1 - 1/' test_golden mistral-window mask
mutate epsilon-outside-the-root kernels/cpu_vector.h 's/1.0f \/ sqrtf\((.*) \+ epsilon\);/1.0f \/ (sqrtf(\1) + epsilon);/' \
    test_golden llama "norm before attention"
mutate epsilon-1e-5-for-1e-2 lib/model.c 's/(norm.epsilon = )b->config->norm_epsilon/\11e-5f/' \
    test_golden llama "norm before attention"
mutate kv-heads-wrongly-shared kernels/cpu_attention.h \
    's/^(    qs.kv_head = kv_head;)/\1\n    uint32_t n_kv = job->op->attention.n_kv_heads, group = job->op->attention.n_heads \/ n_kv;/; s/add_query\(&qs, row, head \+ h\)/add_query(\&qs, row, (head + h) % group * n_kv + kv_head)/; s/\(head \+ i % heads\) \* dim/((head + i % heads) % group * n_kv + kv_head) * dim/' \
    test_golden llama GQA
mutate kv-heads-in-the-reference kernels/cpu_reference.c \
    's/head \/ \(op->attention.n_heads \/ op->attention.n_kv_heads\)/head % op->attention.n_kv_heads/' test_golden llama GQA reference
mutate gate-and-up-swapped lib/model.c 's/if \(n->gate\)/if (n->UP)/; s/if \(n->up\)/if (n->gate)/; s/op, n->gate,/op, n->UP,/; s/op, n->up,/op, n->gate,/; s/n->UP/n->up/' \
    test_golden llama "the norm before or after, the MLP's gate and up"
mutate bias-skipped lib/model.c 's/(n->v, kv, hidden), c->qkv_bias/\1, false/' test_golden
mutate gelu-erf-for-tanh lib/model.c 's/(gate.activation = )c->activation/\1c->activation == NL_GELU_TANH ? NL_GELU_ERF : c->activation/' \
    test_golden
mutate scale-by-head-dim lib/architectures.c 's/^    config->attention_scale = \(float\)\(1 \/ sqrt\(nl_keys.*$/    nl_keys_number(keys, "query_pre_attn_scalar", 256, 0, 1e9);/' \
    test_golden gemma2 "scale or soft-cap"
mutate embedding-scale-left-out lib/model.c 's/(embed.scale = nl_rounded\()c->embedding_scale/\11/' test_golden gemma2 "the embedding"
mutate angle-in-double kernels/cpu_backend.c \
    's/float angle = \(float\)(step->positions\[t\] \* )/double angle = (double)\1/; s/cosf\(angle\)/(float)cos(angle)/; s/sinf\(angle\)/(float)sin(angle)/' test_rotation
mutate merge-window-believed lib/tok_bpe_merge.c 's/!comes_out\(encoder, &window\)/false/' test_tok_merge
mutate merge-rightmost-of-a-rank lib/tok_bpe_merge.c 's/\.rank <= left->rank(\) \|\| right->rank <) left/.rank < left->rank\1= left/' \
    test_tok_merge
mutate merge-neighbour-forgotten lib/tok_bpe_merge.c 's/consider\(encoder, left->next\)/(void)0/' test_tok_merge
built test_jinja && passes test_jinja || exit 1
mutate jinja-variables-outlive-a-turn lib/jinja_run.c 's/^        nl_jinja_scope_begin\(run, scope, node->unset\);$/(void)0;/' test_jinja
mutate jinja-newline-after-a-block lib/jinja_lex.c 's/trims && peek\(lexer, at\) == /false \&\& peek(lexer, at) == /' test_jinja
mutate jinja-iterator-twice lib/jinja_lists.c 's/if \(jv_is\(value, JV_ITERATOR\)\)/if (false)/' test_jinja
built test_bf16 && passes test_bf16 || exit 1
mutate bfloat16-norm-rounded-once kernels/cpu_reference.c 's/norm->rounds && !norm->round_once/false/' test_bf16
mutate bfloat16-gelu-by-steps lib/config.c 's/"gelu_new", NL_GELU_NEW/"gelu_new", NL_GELU_TANH/' test_bf16
mutate bfloat16-embedding-scale lib/model.c 's/w->bfloat16 && (c->architecture->rounds_embedding_scale)/false/' test_bf16
if [ -n "$dry" ] || make -s build/tests/test_emu > /dev/null 2>&1; then
    built test_cuda && passes "test_cuda *llama*" || exit 1
    mutate cuda-dropped-barrier kernels/cuda_matvec.cu '/stage<T, N>\(x, l, moments/{n;d}' "test_cuda *bits*qwen3"
    mutate cuda-wrong-mask kernels/cuda_common.cuh 's/x \+= __shfl_xor_sync\(0xffffffffu/x += __shfl_xor_sync(0x7fffffffu/' "test_cuda llama"
    mutate cuda-last-tile kernels/cuda_prefill.c 's/(tile.n_keys = tile.position \+ tile.n_queries - tile.key_begin);/\1 - (done + tile.n_queries == n \&\& done > 0);/' "test_cuda llama-long"
    mutate cuda-last-keys kernels/cuda_attention.cu 's/position <= p.hi; position \+= WARPS\) \{/position < p.hi; position += WARPS) {/' "test_cuda llama"
    mutate cuda-no-wait-for-staging kernels/cuda_weights.c 's/NL_CUDA\(error, cudaEventSynchronize\(staging->free\[b\]\)\) != 0/false/' "test_cuda llama"
    mutate cuda-host-reads-device kernels/cuda_backend.c 's/memcpy\(step->best, b->host_best/memcpy(step->best, b->best/' "test_cuda llama"
    mutate cuda-stale-pointer-in-graph kernels/cuda_step.c '/^    nl_cuda_drop_graphs\(b\);$/{N;s/.*\n(    cudaFree\(b->partials\);)/\1/}' "test_cuda growing*"
    built test_bf16 kernels/cuda_rows.cuh && passes test_bf16 || exit 1
    mutate cuda-bfloat16-norm-once kernels/cuda_rows.cuh 's/norm.rounds && !norm.round_once/false/' test_bf16
    mutate cuda-bfloat16-branch kernels/cuda_rows.cuh 's/nl_round\(branch \* scale, rounds\)/branch * scale/' test_bf16
    mutate cuda-bfloat16-prefill kernels/cuda_terms.cu 's/nl_round\((f.bias .*), f.rounds\)/\1/' test_bf16
    mutate cuda-last-rows-of-vocabulary kernels/cuda_matvec.cu 's/(there = row\[0\] < \(gated \? half : l.n_rows)\)/\1 - 1)/' "test_cuda llama"
else
    echo "CUDA is not emulated here: no mutations of its kernels"
fi
echo "$ran mutations"
exit $failed
