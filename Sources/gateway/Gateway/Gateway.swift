// The process around the parts: start, reload, drain.
//
//   Machine      what it finds on its machine: user, descriptors, signals, programs, logs
//   Listening    sockets, certificates, event loops
//   Plane        the control queue, and what one process takes over from another
//   Upkeep       what goes on beside requests: names, calls to parties, faults, the store
//   Control      orders, guards, fleets, reloads, the upgrade, the end
//   Operators    calls of commands
//   Doctor       a tool of the operator; nothing else names it
//
// The first five name no type of the ones after them (TidyTests).
//
//   GatewayAssembly          all parts, made from a valid configuration in the order of a start
//   GatewayGround            what a start binds, reads and opens before it makes them
//   GatewayServer            connects and runs them
//   LoopUnit                 one event loop with its proxy and listeners
//   ListenerSet              bound sockets; several event loops share an address
//   PreparedReload           what a reload replaces, made beside the control queue; the
//                            configuration as the proxy takes it, names resolved
//   Resolver                 names to addresses, within a bounded time
//   LogOutputs, LogWriter    lines on their way to files, standard output and standard error
//   SyslogLink               the same, to a syslog daemon
//   Journal                  whether standard output and standard error are systemd's journal
//   StandardStreams          descriptors 0 to 2, safe to use
//   Supervisor               tells systemd how the gateway stands; feeds its watchdog
//   InheritedSockets         listening sockets that the process was started with
//   SignalWatch              TERM, INT and QUIT drain, HUP reloads, USR1 opens the log again, USR2
//                            upgrades
//   Upgrade                  hands over to another process
//   Predecessor              what a process takes over from the one before
//   OutsideCalls             the parties in `Parties`, and the collector of spans
//   HTTPSCalls               sends a call of any of them, by libcurl
//   Doctor                   looks for what commonly goes wrong around a gateway
//   PortHolder               which process has a port that is to be listened on
//   ProcessUser              the user that a process changes to after root has started it
//   ProcessMemory            no core files, no looks into the memory
//
// Order of a start: configuration, descriptors, certificates and keys, addresses bound; privilege
// drop; store (opened, checked, locked), access log; clients accepted. A failure is reported with
// its next step, before any client is accepted.
//
// The control queue never waits for a disk, a reader or a resolver, since it serves operators and
// signals.
//
// A reload reads the files again. If there is an error, the running configuration stays; the log
// and the admin listener show the problem. Listeners, event loops, store and admin address are set
// only at the start; a reload that would change them is refused.
