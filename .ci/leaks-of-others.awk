# Prints a sanitizer's reports without the leaks that are none, or none of ours.
#
# Not done with LeakSanitizer's suppressions: what a suppressed block refers to is not reported
# either, and the side table of an object with weak references refers to that object, so that any
# leak with a weak reference in it would go unseen. Here a block is left out alone.
#
# A block is left out for what lies directly above its allocation:
#
# * formWeakReference: an object with weak references knows their side table by a pointer with other
#   bits in it, which the sanitizer does not see (https://github.com/llvm/llvm-project/issues/56751).
#   If the object is leaked, it is reported itself. Foundation's Process.run makes one too, of the
#   thread's run loop (swift-corelibs-foundation, Process.swift, `weak var runLoop`).
# * libcurl's texts of an address (strdup, realloc, malloc): FoundationNetworking takes an address
#   apart for each request and frees none of the parts (swift-corelibs-foundation,
#   CFURLSessionCurlHostIsEqual). The stack ends within libcurl, which keeps no frame pointers. What
#   HTTPSCalls could forget are handles, which libcurl makes with calloc: they are reported.
# * Data's storage and its bytes: a Data with more than 14 bytes marks the pointer to its storage with
#   bits that the sanitizer does not see (swift-foundation, Data._Representation).
# * readBytesFromFile, through readDataFromFile, a multiple of 4096 bytes: swift-foundation reads a
#   file of size 0 into a buffer, and where nothing comes returns an empty Data without freeing it.

function ended() {
    if (kept != "") printf "%s%s%s", head, kept, summary
    head = kept = summary = ""
}

# Whether the first frame that is no allocator's is one of those above.
function isOfOthers(    lines, words, count, i, size) {
    count = split($0, lines, "\n")
    split(lines[1], words, " ")
    size = words[4] / words[7]
    for (i = 2; i <= count; i++) {
        sub(/^ *#[0-9]+ 0x[0-9a-f]+ in /, "", lines[i])
        if (lines[i] ~ /^(malloc|realloc|strdup) / && lines[i + 1] ~ /libcurl/) return 1
        if (lines[i] ~ /^(malloc|calloc|realloc|posix_memalign|operator new) *(\(|\/)/) continue
        if (lines[i] ~ /^swift_(slowAlloc|allocObject) *(\(|\/)/) continue
        if (lines[i] ~ /20FoundationEssentials(4DataV|13__DataStorageC)/) return 1
        if (lines[i] ~ /formWeakReference\(\)/) return size == 32
        if (lines[i] !~ /readBytesFromFile/ || lines[i + 1] !~ /readDataFromFile/) return 0
        return size % 4096 == 0
    }
    return 0
}

BEGIN { RS = "" }

FNR == 1 { ended() }

/LeakSanitizer: detected memory leaks/ { head = head $0 "\n\n"; next }

/^SUMMARY: / { summary = $0 "\n\n"; next }

/^(Direct|Indirect) leak of / && isOfOthers() { next }

{ kept = kept $0 "\n\n" }

END { ended() }
