/*
 * tok.h: inside the tokenizer: what the files tok_*.c and tokenizer.c share. Programs include tokenizer.h.
 *
 * A tokenizer.json is compiled into flat tables that never change: lists of stages (normalizers,
 * pre-tokenizers, decoders, with their Sequences flattened), a vocabulary, merges, added tokens, a template.
 * Strings lie in one pool and are named by offset, ids and table entries by index; only compiled regexes are
 * objects. What an encoding needs besides lives in a scratch, so that threads can share a tokenizer.
 *
 * The way of a text: added tokens that are not normalized are cut out of it; each piece between them is
 * normalized; the normalized added tokens are cut out of that; each piece is split (ranges over its text) and
 * each range given to the model; then the template.
 *
 * Byte-level BPE, `raw` here: where ByteLevel is the last pre-tokenizer, its mapping of bytes to printable
 * characters is undone in the vocabulary once instead of being done on each text, and the model works on the
 * bytes themselves.
 */
#ifndef NL_TOK_H
#define NL_TOK_H

#include "file.h"
#include "json.h"
#include "regex.h"
#include "tokenizer.h"

enum { NL_TOK_LARGEST_ID = (1 << 24) - 1 }; /* a table has an entry for each id up to the largest */
#define NL_TOK_NONE UINT32_MAX
enum { NL_TOK_JOIN_BITS = 20 }; /* of tok_bpe.joins */

struct tok_string {
    uint32_t at, size; /* bytes in the pool */
};

enum tok_stage_kind {
    /* normalizers */
    TOK_NFC,
    TOK_NFD,
    TOK_NFKC,
    TOK_NFKD,
    TOK_LOWERCASE,
    TOK_PREPEND, /* text */
    TOK_STRIP,   /* argument: 1 left, 2 right */
    TOK_STRIP_ACCENTS,
    TOK_NMT,
    TOK_BERT,        /* argument: enum tok_bert */
    TOK_PRECOMPILED, /* text: the trie; more: the replacements; see tok_charsmap.c */
    /* normalizer and decoder */
    TOK_REPLACE, /* pattern, text */
    /* normalizer and pre-tokenizer */
    TOK_BYTE_MAP, /* bytes to the printable characters of GPT-2 */
    /* pre-tokenizers */
    TOK_SPLIT,        /* pattern, argument: enum tok_behavior */
    TOK_PREFIX_SPACE, /* before each piece that does not begin with one */
    TOK_METASPACE,    /* text: the replacement; argument: enum tok_scheme; as a decoder too */
    TOK_SCRIPTS,
    TOK_FIXED_LENGTH, /* argument: characters */
    /* decoders */
    TOK_BYTE_LEVEL,
    TOK_BYTE_FALLBACK,
    TOK_FUSE,
    TOK_STRIP_ENDS,  /* text: one character; argument: how many at the start, end: how many at the end */
    TOK_BPE_DECODER, /* text: the suffix */
    TOK_WORD_PIECE,  /* text: the prefix; argument: cleanup */
    TOK_CTC,         /* text: the padding; more: the delimiter; argument: cleanup */
    TOK_JOIN,        /* one blank between tokens: what the reference does where there is no decoder */
};
enum tok_bert { TOK_BERT_CLEAN = 1, TOK_BERT_CHINESE = 2, TOK_BERT_ACCENTS = 4, TOK_BERT_LOWERCASE = 8 };
enum tok_pattern_kind { TOK_LITERAL, TOK_REGEX, TOK_NUMERIC, TOK_SPACE, TOK_WORDS, TOK_PUNCTUATION };
enum tok_behavior {
    TOK_REMOVED,
    TOK_ISOLATED,
    TOK_MERGED_WITH_PREVIOUS,
    TOK_MERGED_WITH_NEXT,
    TOK_CONTIGUOUS,
};
enum tok_scheme { TOK_ALWAYS, TOK_FIRST, TOK_NEVER };

struct tok_pattern {
    uint32_t kind;  /* enum tok_pattern_kind; TOK_NUMERIC, _SPACE, _PUNCTUATION match one character, TOK_WORDS
                       \w+|[^\w\s]+ */
    uint32_t regex; /* index into regexes */
    uint32_t scanner; /* enum tok_scanner, which then stands for the regex */
    struct tok_string literal;
};
struct tok_stage {
    uint32_t kind, argument, end;
    bool invert; /* TOK_SPLIT: matches and the rest change places */
    struct tok_pattern pattern;
    struct tok_string text, more;
};
struct tok_stages {
    struct tok_stage *data; /* owned */
    size_t count;
};

/* The model's tokens: their keys (raw: bytes) and, open addressing, the way back. */
struct tok_token {
    struct tok_string key;
    bool used;     /* there is such an id */
    bool unmapped; /* raw: the token holds characters that stand for no byte; its key is its text and matches
                      nothing */
};
struct tok_slot {
    uint32_t hash; /* of the key: most slots of other keys are told by it alone */
    uint32_t id;   /* NL_TOK_NONE: free */
};
struct tok_vocab {
    struct tok_token *tokens; /* [n_ids] */
    uint32_t n_ids;           /* largest id + 1 */
    uint32_t size;            /* how many tokens */
    struct tok_slot *slots;   /* [mask + 1] */
    uint32_t mask;
};

struct tok_merge {
    uint32_t left, right; /* left NL_TOK_NONE: a free slot */
    uint32_t rank, id;
};
struct tok_bpe {
    struct tok_merge *merges; /* open addressing, [mask + 1] */
    uint32_t mask;
    uint32_t *made; /* [n_ranks] the token that the merge of each rank makes */
    uint32_t n_ranks;
    uint32_t bytes[256];    /* the token of a single byte (not raw: of an ASCII character), or NL_TOK_NONE */
    uint32_t fallback[256]; /* the token <0xNN>, or NL_TOK_NONE; all NONE without byte_fallback */
    uint32_t unk;           /* or NL_TOK_NONE */
    uint64_t
        *joins; /* bits, by hash: pairs of first symbols that some merge may join across; others never meet */
    bool odd; /* some merge makes nothing longer than its left half: then symbols may become what they were */
    bool unk_missing; /* it is named but no token: an error once it is needed */
    bool fuse_unk, byte_fallback, ignore_merges;
    struct tok_string prefix, suffix; /* continuing_subword_prefix, end_of_word_suffix */
};

static inline uint32_t tok_hash_pair(uint32_t left, uint32_t right)
{
    return (uint32_t)(((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u >> 32);
}
/* NULL when no merge joins the two. */
static inline const struct tok_merge *tok_find_merge(const struct tok_bpe *bpe, uint32_t left, uint32_t right)
{
    for (uint32_t i = tok_hash_pair(left, right) & bpe->mask;; i = (i + 1) & bpe->mask) {
        const struct tok_merge *merge = &bpe->merges[i];
        if (merge->left == left && merge->right == right)
            return merge;
        if (merge->left == NL_TOK_NONE)
            return NULL;
    }
}
/* Soon they will be looked for. */
static inline void tok_prefetch_merge(const struct tok_bpe *bpe, uint32_t left, uint32_t right)
{
    __builtin_prefetch(&bpe->merges[tok_hash_pair(left, right) & bpe->mask]);
}
/* Whether any merge could join a text that ends in the symbol `left` with one that begins with `right`; may
 * say yes wrongly. */
static inline bool tok_may_join(const struct tok_bpe *bpe, uint32_t left, uint32_t right)
{
    uint32_t bit = tok_hash_pair(left, right) >> (32 - NL_TOK_JOIN_BITS);
    return bpe->joins[bit / 64] >> bit % 64 & 1;
}

/* All keys of the vocabulary, for the longest (or every) one that begins at a place. */
struct tok_trie_node {
    uint32_t first; /* the first child; the others follow, ascending labels */
    uint32_t id;    /* of the key that ends here, or NL_TOK_NONE */
    uint16_t count; /* of children */
    uint8_t label;  /* the last byte of the way here */
};
struct tok_trie {
    struct tok_trie_node *nodes; /* [count]; the first is the root */
    uint32_t count;
};

enum tok_model { TOK_MODEL_BPE, TOK_MODEL_UNIGRAM, TOK_MODEL_WORD_PIECE, TOK_MODEL_WORD_LEVEL };
/* The models that are not BPE. */
struct tok_lexicon {
    struct tok_trie trie;     /* Unigram, WordPiece */
    double *scores;           /* [vocab.n_ids], Unigram */
    double unk_score;         /* Unigram: of a character that is no token */
    uint32_t longest;         /* key, in bytes */
    uint32_t unk;             /* or NL_TOK_NONE */
    uint32_t fallback[256];   /* Unigram: the token <0xNN>, or NL_TOK_NONE; all NONE without byte_fallback */
    uint64_t most_characters; /* WordPiece: a longer word is unknown */
    uint32_t prefix_size;     /* WordPiece: of the prefix of continuations, in bytes */
    uint32_t continuation; /* WordPiece: the trie's node behind the prefix, NL_TOK_NONE when no key has it */
};

struct tok_added_token {
    struct tok_string content, pattern; /* pattern: the content, normalized if `normalized` */
    uint32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
    bool hidden; /* left out where special tokens are: not quite `special`, see tok_added.c */
};
/* Patterns of one pass, sorted by bytes, equal ones in the order of the file; `first` bounds those with each
 * first byte. */
struct tok_matcher {
    uint32_t *order; /* [count] indices into tok_added.tokens */
    uint32_t count;
    uint32_t first[257];
    uint64_t pairs[65536 / 64]; /* bits: the first two bytes of some pattern, the lower first */
    int only;                   /* the first byte of all patterns, -1 when they differ */
};
struct tok_added {
    struct tok_added_token *tokens; /* [count] */
    uint32_t count;
    uint32_t *by_id; /* [n_by_id] indices of the token that each id stands for, ascending ids */
    uint32_t n_by_id;
    struct tok_matcher passes[2]; /* not normalized, normalized */
};

struct nl_tokenizer {
    struct nl_buf pool;
    struct tok_stages normalizers, splits, decoders;
    struct nl_regex **regexes;   /* [n_regexes]; NULL where a scanner does it */
    struct tok_string *patterns; /* [n_regexes] what they were compiled from */
    size_t n_regexes;
    struct tok_vocab vocab;
    enum tok_model model;
    struct tok_bpe bpe;
    struct tok_lexicon lexicon;
    struct tok_added added;
    struct nl_ids template; /* ids, NL_TOK_NONE where the text goes */
    bool raw;
    struct tok_string blank;    /* " " */
    struct tok_string *pieces;  /* [n_ids]; see nl_tokenizer_piece */
    uint32_t n_ids;             /* of the vocabulary and the added tokens */
    struct nl_encoder *encoder; /* for nl_tokenizer_encode */
    struct nl_map image;        /* what pool and arrays lie in; empty: each is malloced */
};

struct tok_range {
    size_t begin, end;
};
struct tok_ranges {
    struct tok_range *data;
    size_t count, capacity;
};
struct tok_symbol {
    uint32_t id;
    int32_t previous, next; /* indices, -1 at the ends; id NL_TOK_NONE: merged away */
    uint32_t rank;          /* of the merge that joins it and the next, NL_TOK_NONE: none does */
};
struct tok_window {
    size_t begin; /* in the stretch */
    size_t given; /* out->count before it */
    uint32_t id;  /* the token that begins here according to the window before */
    size_t size;  /* its size in symbols */
};
/* Unigram: the best way to a place ends in this token. */
struct tok_step {
    uint32_t id, size; /* size in bytes, 0: no way leads here */
};
/* Called for each piece that a pre-tokenizer writes anew: see tok_trace.c. */
struct tok_rewrite_hook {
    void *context;
    int (*call)(void *context, const struct tok_stage *, struct tok_range from, const char *made, size_t size,
                struct nl_error *error);
};
struct nl_encoder {
    const struct nl_tokenizer *tokenizer;
    struct nl_regex_scratch *regex;
    struct tok_memory *memory;       /* of words: see tok_fast.h; NULL: not for this tokenizer */
    struct nl_buf normalized, spare; /* normalizers */
    struct nl_buf rewritten[2];      /* pre-tokenizers that change the text, in turn */
    const char *text;                /* the piece being split, */
    size_t length;
    bool can_cut;  /* the tokenizer allows nl_encoder_cut */
    bool at_start; /* which begins where the whole text does */
    struct tok_ranges ranges, next;
    struct nl_ids *out; /* the caller's, during a call */
    /* BPE, see tok_bpe_merge.c */
    uint32_t *word;                    /* the symbols of a stretch */
    size_t n_word, word_capacity, due; /* how many symbols the next window waits for */
    size_t given;                      /* out->count before the stretch */
    struct tok_window *windows;        /* but the first, which begins where the stretch does */
    size_t n_windows, windows_capacity;
    struct tok_symbol *symbols; /* being merged */
    size_t n_symbols, symbols_capacity;
    uint64_t *heap;
    size_t heap_size, heap_capacity;
    uint32_t *byte_merges;  /* [65536], see tok_bpe.c; NULL: not raw */
    struct tok_step *steps; /* Unigram: [length + 1] */
    size_t steps_capacity;
    struct tok_rewrite_hook hook; /* call NULL: none */
    double *best; /* Unigram: the scores of the last places, a ring of lexicon.longest or more */
    size_t best_capacity;
};

static inline const char *tok_text(const struct nl_tokenizer *tok, struct tok_string string)
{
    return tok->pool.data + string.at;
}
/* Copies bytes to the pool, NUL-terminated. */
int nl_tok_intern(struct nl_tokenizer *, const char *bytes, size_t size, struct tok_string *out,
                  struct nl_error *error);

/* tok_json.c: members of an object in tokenizer.json; a wrong type is NL_DATA. */
int nl_tok_json_bool(const struct nl_json *object, const char *key, bool otherwise, bool *out,
                     struct nl_error *error);
/* The member's string, U+0000 as it is, appended to *out, which is emptied first; 0 when it is absent or
 * null, 1 when it is there. */
int nl_tok_json_string(const struct nl_json *object, const char *key, struct nl_buf *out,
                       struct nl_error *error);
/* "type" of an object, compared to a name. */
bool nl_tok_json_type_is(const struct nl_json *object, const char *type);
const char *nl_tok_json_type(const struct nl_json *object); /* "(none)" where there is none */

/* tok_stages.c: from JSON (null is none). */
int nl_tok_load_normalizer(struct nl_tokenizer *, const struct nl_json *, struct nl_error *);
int nl_tok_load_splitter(struct nl_tokenizer *, const struct nl_json *, struct nl_error *);
int nl_tok_load_decoder(struct nl_tokenizer *, const struct nl_json *, struct nl_error *);

/* tok_pattern.c: the matches in a text, one after the other, as the reference's regex library finds them. */
struct tok_matches {
    const struct nl_tokenizer *tokenizer;
    const struct tok_pattern *pattern;
    struct nl_regex_scratch *regex;
    const char *text;
    size_t length, at, last; /* last: the end of the match before, SIZE_MAX at first */
};
int nl_tok_next_match(struct tok_matches *, size_t *begin, size_t *end,
                      struct nl_error *error); /* 1, 0, -1 */
/* Appends the text with each match replaced. */
int nl_tok_replace(const struct nl_tokenizer *, const struct tok_stage *, struct nl_regex_scratch *,
                   const char *text, size_t length, struct nl_buf *out, struct nl_error *error);

/* tok_normalize.c: *out and *size get the normalized text, in the scratch or the input itself. */
int nl_tok_normalize(struct nl_encoder *, const char *text, size_t length, const char **out, size_t *size,
                     struct nl_error *error);
/* One normalizer, appended to *out. */
int nl_tok_normalize_stage(struct nl_encoder *, const struct tok_stage *, const char *text, size_t length,
                           struct nl_buf *out, struct nl_error *error);
/* tok_split.c: splits encoder->text into encoder->ranges, and may rewrite it. */
int nl_tok_split(struct nl_encoder *, const char *text, size_t length, bool at_start, struct nl_error *error);
/* The same with the first `count` stages alone. */
int nl_tok_split_some(struct nl_encoder *, size_t count, const char *text, size_t length, bool at_start,
                      struct nl_error *error);

/* tokenizer.c: the ids of one pre-token. */
int nl_tok_encode_word(struct nl_encoder *, const char *text, size_t length, struct nl_ids *out,
                       struct nl_error *error);

/* tok_bytes.c: GPT-2's characters for bytes. */
void nl_tok_bytes_to_chars(const char *bytes, size_t size, struct nl_buf *out);
/* Appends the bytes; false (*out as before) when a character stands for none. */
bool nl_tok_chars_to_bytes(const char *text, size_t size, struct nl_buf *out);

/* tok_vocab.c */
int nl_tok_load_vocab(struct nl_tokenizer *, const struct nl_json *object, struct nl_error *error);
/* [[token, score], ...]: ids in order; a token that is there twice has its last id. */
int nl_tok_load_scored_vocab(struct nl_tokenizer *, const struct nl_json *array, struct nl_error *error);
/* The id of a key (raw: of bytes), NL_TOK_NONE when there is none. */
uint32_t nl_tok_find(const struct nl_tokenizer *, const char *key, size_t size);
/* The id of a token as the file spells it. */
uint32_t nl_tok_find_content(const struct nl_tokenizer *, const char *content, size_t size);
/* Appends a model token as the file spells it; false when there is no such id. */
bool nl_tok_content(const struct nl_tokenizer *, uint32_t id, struct nl_buf *out);

/* tok_bpe_load.c, tok_bpe.c */
int nl_tok_load_bpe(struct nl_tokenizer *, const struct nl_json *model, struct nl_error *error);
int nl_tok_bpe(struct nl_encoder *, const char *text, size_t length, struct nl_ids *out,
               struct nl_error *error);
/* tok_bpe_merge.c: merges at most NL_TOK_FEW symbols in place, pairs[i] and ranks[i] being of what joins
 * ids[i] and the next; returns how many are left. */
enum { NL_TOK_FEW = 24 };
size_t nl_tok_bpe_merge_few(const struct tok_bpe *, uint32_t *ids, const struct tok_merge **pairs,
                            uint32_t *ranks, size_t n);
/* Begins a word, whose ids go to encoder->out; its next symbol; the last was it. */
void nl_tok_bpe_start(struct nl_encoder *);
int nl_tok_bpe_add(struct nl_encoder *, uint32_t id, struct nl_error *error);
int nl_tok_bpe_finish(struct nl_encoder *, struct nl_error *error);

/* tok_lexicon.c: the other models; tok_words.c, tok_unigram.c: the ids of one pre-token. */
int nl_tok_load_unigram(struct nl_tokenizer *, const struct nl_json *model, struct nl_error *error);
int nl_tok_load_word_piece(struct nl_tokenizer *, const struct nl_json *model, struct nl_error *error);
int nl_tok_load_word_level(struct nl_tokenizer *, const struct nl_json *model, struct nl_error *error);
int nl_tok_unigram(struct nl_encoder *, const char *text, size_t length, struct nl_ids *out,
                   struct nl_error *error);
int nl_tok_word_piece(struct nl_encoder *, const char *text, size_t length, struct nl_ids *out,
                      struct nl_error *error);
int nl_tok_word_level(struct nl_encoder *, const char *text, size_t length, struct nl_ids *out,
                      struct nl_error *error);

/* tok_trie.c */
int nl_tok_build_trie(const struct nl_tokenizer *, struct tok_trie *, struct nl_error *error);
/* The node behind `byte`, NULL when no key goes on so. */
const struct tok_trie_node *nl_tok_trie_step(const struct tok_trie *, const struct tok_trie_node *,
                                             unsigned char byte);

/* tok_charsmap.c: the Precompiled normalizer. */
int nl_tok_load_charsmap(struct nl_tokenizer *, const struct nl_json *json, struct tok_stage *stage,
                         struct nl_error *error);
int nl_tok_charsmap(const struct nl_tokenizer *, const struct tok_stage *, const char *text, size_t length,
                    struct nl_buf *out, struct nl_error *error);

/* tok_added.c */
/* `array`: added_tokens; may be called again with more. nl_tok_build_added comes after the last and after the
 * normalizers. */
int nl_tok_load_added(struct nl_tokenizer *, const struct nl_json *array, struct nl_error *error);
int nl_tok_add_token(struct nl_tokenizer *, const struct nl_json *object, struct nl_error *error);
int nl_tok_build_added(struct nl_tokenizer *, struct nl_error *error);
const struct tok_added_token *nl_tok_added_by_id(const struct nl_tokenizer *, uint32_t id);
const struct tok_added_token *nl_tok_added_by_content(const struct nl_tokenizer *, const char *content,
                                                      size_t size);
/* The pieces of a text: between[begin, end) is ordinary text, then token (NULL at the last). */
struct tok_cut {
    const struct nl_tokenizer *tokenizer;
    unsigned pass;
    bool plain; /* special tokens are ordinary text */
    const char *text;
    size_t length, at, done;
};
/* 1 and the next piece: a token, or text [*begin, *end) with *token NULL; 0 at the end. */
int nl_tok_next_piece(struct tok_cut *, size_t *begin, size_t *end, const struct tok_added_token **token);

/* tok_post.c */
int nl_tok_load_template(struct nl_tokenizer *, const struct nl_json *post_processor, struct nl_error *error);
/* tok_config.c: tokenizer_config.json, after the rest is loaded but before nl_tok_build_added. */
int nl_tok_load_config(struct nl_tokenizer *, const struct nl_json *config, struct nl_error *error);

/* tok_decode.c: fills tokenizer->pieces. */
int nl_tok_build_pieces(struct nl_tokenizer *, struct nl_error *error);

/* tok_cut.c: whether a text can be cut at all. */
bool nl_tok_can_cut(const struct nl_tokenizer *);

/* tok_cache.c */
/* All that a tokenizer holds, as arrays in one order. */
enum { NL_TOK_PARTS = 18 };
struct tok_part {
    void *pointer; /* to the pointer to the array */
    uint64_t count, size;
};
void nl_tok_parts(struct nl_tokenizer *, struct tok_part parts[NL_TOK_PARTS]);
struct nl_tok_sources;
/* The tokenizer that was compiled from these files, mapped; NULL where there is none that holds. */
struct nl_tokenizer *nl_tok_cache_open(const struct nl_tok_sources *);
/* Keeps it for the next start, if that can be done. The files were looked at before they were read. */
void nl_tok_cache_keep(struct nl_tokenizer *, const struct nl_tok_sources *);

/* tok_undo.c: the decoders as stages that bytes stream through, each byte belonging to a token whose end is
 * told. */
struct tok_undo_state {
    struct nl_buf held;  /* what may still change */
    struct nl_buf parts; /* of a token, for a stage that needs it whole */
    size_t tokens;       /* ended so far */
    uint32_t left;       /* TOK_STRIP_ENDS: how many may still be stripped at this token's start */
    bool inside;         /* within a token */
    bool in_run, bad;    /* TOK_BYTE_FALLBACK */
};
struct nl_decoder {
    const struct nl_tokenizer *tokenizer;
    unsigned flags;
    struct nl_regex_scratch *regex;
    struct tok_undo_state *states; /* [decoders.count] */
    struct nl_buf token, spare;
    struct nl_buf *out; /* the caller's, during a call */
};
enum { NL_TOK_MOST_STAGES = 64 }; /* of one kind: the decoders call each other */
/* Gives bytes of a token to stage i; `end`: the token ends with them. */
int nl_tok_undo(struct nl_decoder *, size_t i, const char *bytes, size_t size, bool end,
                struct nl_error *error);
/* After the last token: each stage gives what it holds and forgets. */
int nl_tok_undo_finish(struct nl_decoder *, struct nl_error *error);
/* tok_undo_words.c: appends what WordPiece's and CTC's decoders make of one token. */
int nl_tok_undo_word_piece(const struct nl_tokenizer *, const struct tok_stage *, bool first,
                           const char *token, size_t size, struct nl_buf *out, struct nl_error *error);
int nl_tok_undo_ctc(const struct nl_tokenizer *, const struct tok_stage *, const char *token, size_t size,
                    struct nl_buf *out, struct nl_error *error);
/* The byte that "<0xNN>" stands for, or -1. */
int nl_tok_fallback_byte(const char *token, size_t size);

#endif
