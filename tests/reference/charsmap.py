"""Builds the precompiled_charsmap of a Precompiled normalizer from a dictionary, as SentencePiece lays it out: the size of a trie in
bytes, the trie (a double array of 32-bit units), the replacements, each ended by a zero byte."""
import base64
import struct


def charsmap(replacements):
    """{string: replacement} as bytes."""
    blob, offsets = b"", {}
    for value in replacements.values():
        if value not in offsets:
            offsets[value] = len(blob)
            blob += value.encode() + b"\0"
    keys = sorted((k.encode(), offsets[v]) for k, v in replacements.items())
    units, used, taken = {}, {0}, set()

    def place(position, keys, depth):
        """The children of the node at `position`: its unit gets their offset."""
        labels = sorted({k[depth] if len(k) > depth else 0 for k, _ in keys})
        base = 1
        while base in taken or any(position ^ base ^ label in used for label in labels):
            base += 1
        taken.add(base)
        used.update(position ^ base ^ label for label in labels)
        has_leaf = 0 in labels
        units[position] = units.get(position, 0) | base << 10 | has_leaf << 8
        for label in labels:
            child = position ^ base ^ label
            if label == 0:
                units[child] = 1 << 31 | next(v for k, v in keys if len(k) == depth)
            else:
                units[child] = label
                place(child, [(k, v) for k, v in keys if len(k) > depth and k[depth] == label], depth + 1)

    place(0, keys, 0)
    size = (max(units) | 0xff) + 1
    trie = b"".join(struct.pack("<I", units.get(i, 0)) for i in range(size))
    return struct.pack("<I", len(trie)) + trie + blob


def charsmap_text(replacements):
    return base64.b64encode(charsmap(replacements)).decode()
