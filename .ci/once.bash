# Options of a build that is run once, sourced by those who make one: one compiler for a module, instead of one for
# each half of its files and one for what others see of it. A tenth less than with the module's interface apart.
once=(-Xswiftc -wmo -Xswiftc -num-threads -Xswiftc 1 -Xswiftc -no-emit-module-separately-wmo)
