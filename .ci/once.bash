# Options of a build that is run once, sourced by those who make one: one compiler for a module, instead of one for
# each half of its files and one for what others see of it. A tenth less than with the module's interface apart.
# SwiftPM looks for XCTest's tests in the index, which has to be there for that; what it would say of modules of
# the toolchain and of C nobody looks up, and it is a sixth of a build.
once=(-Xswiftc -wmo -Xswiftc -num-threads -Xswiftc 1 -Xswiftc -no-emit-module-separately-wmo)
once+=(-Xswiftc -index-ignore-system-modules -Xswiftc -index-ignore-clang-modules)
