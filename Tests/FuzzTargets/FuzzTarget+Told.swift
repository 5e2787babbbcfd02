import Encodings
import Services

extension FuzzTarget {
    /// An answer of another gateway, as the database has it: after an even first byte its report,
    /// after an odd one its refusals. Whatever is read can be merged, shown, and told again.
    static func told(_ bytes: [UInt8]) {
        guard let first = bytes.first else { return }
        let told = Array(bytes.dropFirst())
        do throws(ByteReader.Fault) {
            if first.isMultiple(of: 2) {
                show(try Report(told: told), age: Int64(first))
            } else {
                let read = try ToldRefusals(told: told)
                var all = ToldRefusals([], named: nil, of: "g1")
                all.add(read, named: nil)
                demand((try? ToldRefusals(told: all.told)) != nil, "refusals are told again")
            }
        } catch {
            return
        }
    }

    private static func show(_ read: Report, age: Int64) {
        let own = Report(
            ReportLedger(startedAt: 0),
            of: [],
            ReportScope(),
            at: (1_776_679_000, wall: 1_776_680_000, tick: 1_000)
        )
        // Two gateways that have counted as much.
        let others = [(report: read, age: age), (report: read, age: 0)]
        let all = Report(own, isCounted: true, others: others, ReportScope(), of: ToldGateways([]))
        demand(!all.text.isEmpty && !all.json.isEmpty, "a report is shown")
        demand((try? Report(told: read.told)) != nil, "a report is told again")
    }
}
