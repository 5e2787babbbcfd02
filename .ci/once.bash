# Options of a build that is run once, sourced by those who make one: one compiler for a module, instead of one for
# each half of its files and one for what others see of it. A tenth less than with the module's interface apart.
# SwiftPM looks for XCTest's tests in the index, so there has to be one. It leaves out modules of the toolchain and of C,
# which take a third of Proxy's time and a twentieth of the whole build's.
once=(-Xswiftc -wmo -Xswiftc -num-threads -Xswiftc 1 -Xswiftc -no-emit-module-separately-wmo)
once+=(-Xswiftc -index-ignore-system-modules -Xswiftc -index-ignore-clang-modules)
# A build that is run once needs no check of the compiler's own output, no search for output that has not changed, and
# no pass that only makes code faster.
once+=(-Xswiftc -Xfrontend -Xswiftc -disable-llvm-verify -Xswiftc -Xfrontend -Xswiftc -disable-incremental-llvm-codegen)
once+=(-Xswiftc -Xllvm -Xswiftc -sil-disable-pass=mandatory-redundant-load-elimination)
# The toolchain has LLVM's linker, too. gold takes several times as long for the 800 MB of eight programs.
once+=(-Xswiftc -use-ld=lld)

# BoringSSL (swift-crypto) has 246 files of C++, which all read the same headers: the standard library's and its own.
# This compiles them once, in a folder, and adds them to `once`: most files then take 0.04 s, and not 0.18 s. The
# options are those that SwiftPM gives for debugging, since clang takes no headers that were compiled with others. The
# checkout of swift-crypto has to be there.
compile_headers() {
    local folder=$1 boring=$2/Sources/CCryptoBoringSSL clang
    clang=$(dirname -- "$(realpath -- "$(command -v swift)")")/clang
    mkdir -p -- "$folder"
    printf '#include <%s>\n' algorithm atomic memory string_view type_traits utility CCryptoBoringSSL.h \
        "$boring/crypto/internal.h" > "$folder/headers.h.new"
    replace_if_changed "$folder/headers.h"
    "$clang" -x c++-header -std=c++17 -O0 -DSWIFT_PACKAGE=1 -DDEBUG=1 -fblocks -fPIC -g -fno-omit-frame-pointer -w \
        -fpch-instantiate-templates -Xclang -fno-pch-timestamp -I "$boring/include" \
        -o "$folder/headers.pch.new" "$folder/headers.h" || return 0
    replace_if_changed "$folder/headers.pch"
    # Debug information of BoringSSL serves no debugger here.
    once+=(-Xcxx -include-pch -Xcxx "$folder/headers.pch" -Xcxx -g0)
}

# Puts FILE.new into the place of FILE, unless they are the same: what was built with FILE is then built already.
replace_if_changed() {
    if cmp -s -- "$1.new" "$1"; then rm -- "$1.new"; else mv -- "$1.new" "$1"; fi
}
