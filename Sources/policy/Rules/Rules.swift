// What is asked of a request, and for which clients: the rules, as values.
//
//   RuleSet      all rules of a configuration and the default, with an index over them
//     Rule       one rule: a RouteMatch, an origin, and what is asked
//       RouteMatch   host, method and path pattern
//       Rollout      for which share of the keys `enforce` refuses, and since when
//       AppScope     keys of which apps are admitted
//   AppPolicy    what is asked of a key when it is enrolled
//   CoverIndex, OverlapIndex   which rules take the requests of another rule, all of them or some
//
// The first rule that matches, in the order of the files, decides. There is no precedence by
// specificity: what is written first wins, and a rule that can never be reached is refused when
// the file is loaded (`RouteMatch.covers`).
//
// A path is looked up as written, and besides in every reading that its origin may make of it:
// HTTPWire's `PathReading`. Patterns are read in the same way, so that a rule for `/V1/Orders` is
// met by `/v1/orders` at an origin that ignores case. A request for which rules come out that
// decide differently has no route (`RuleSet.Route.disputed`).
//
// Nothing here reads a clock, a file or a socket. Matching allocates nothing, and its cost grows
// with the length of the path and not with the number of rules.
