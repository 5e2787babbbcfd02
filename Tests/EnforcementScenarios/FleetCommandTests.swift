import Expectations
import PostgreSQLKeyStore
import Testing

@testable import Gateway

/// What commands make of the rows that gateways of a fleet write about themselves.
struct FleetCommandTests {
    /// `resume` waited for ten seconds for a process that had died while it was drained.
    @Test func `a row that is silent beside a later process of its name is drained no more`() {
        func row(_ name: String, _ standing: String, _ start: Int64, age: Int64) -> FleetMember {
            var row = FleetMember(instance: start, name: name, program: "1", startedAt: start)
            row.standing = standing
            row.age = age
            return row
        }
        let dead = row("g1", "drained", 7, age: 4)
        let cases: [(members: [FleetMember], isDrained: Bool)] = [
            ([dead, row("g1", "serving", 9, age: 1)], false),
            ([dead, row("g1", "serving", 7, age: 0)], false),
            ([dead, row("g1", "drained", 9, age: 1)], true),
            // Alone, or beside others, it may be a process that the database keeps waiting.
            ([dead], true), ([dead, row("g2", "serving", 9, age: 1)], true),
            ([dead, row("g1", "serving", 5, age: 1)], true),
            ([dead, row("g1", "serving", 9, age: 5)], true),
            // A row that is young.
            ([row("g1", "drained", 7, age: 2), row("g1", "serving", 9, age: 1)], true),
            ([row("g2", "drained", 7, age: 0)], false), ([], false),
        ]
        for (members, isDrained) in cases {
            expectEqual(FleetCommands.isDrained("g1", members), isDrained, "\(members)")
        }
    }
}
