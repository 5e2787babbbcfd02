import AppAttest
import Cryptography
import Expectations
import HTTPWire
import KeyStore
import Rules
import Testing
import Verification

@testable import Services

@Suite struct RuleCountsTests {
    @Test func `each class of verdicts has its number, and each reason its own`() {
        let counts = RuleCounts([
            .signed(1), .signed(1), .signed(2, .refuse(.counterReplayed)), .bare(1),
            .signed(3, .refuse(.signatureMismatch)), .signed(4, .failure(.store)),
            .signed(5, .refuse(.unsupported)), .signed(6, .refuse(.preflight)),
            .signed(7, .refuse(.counterReplayed), isRefused: true),
        ])
        expectEqual(VerdictClass.allCases.map { counts[$0] }, [2, 1, 1, 3, 1, 1])
        expectEqual(counts.requests, 9)
        expectEqual(counts.refused, 1)
        // Some of them may share a register.
        #expect((5...7).contains(counts.installCount))
        expectEqual(counts.cells.reasons.first?.reason, "counter-replayed")
        expectEqual(counts.cells.reasons.first?.count, 2)
        expectEqual(Set(counts.cells.reasons.map(\.reason)).count, 6)
    }

    @Test func `a share would have refused those whose bucket it takes in`() {
        let keys = 1...2000
        let counts = RuleCounts(
            keys.map { .signed($0, .refuse(.counterReplayed)) } + keys.map { .signed($0) }
                + (1...1000).flatMap { [.bare($0), .bare($0)] }
        )
        for (step, share) in zip(counts.steps, RuleCounts.shares) {
            let installs = keys.count {
                let key = ReportedRequest.key($0).digest.bytes
                return Rollout.sample.bucket(of: key.span).isWithin(share.share)
            }
            let addresses = (1...1000 as ClosedRange<UInt32>).count {
                Rollout.sample.bucket(of: IPAddress.v4($0).bytes.span).isWithin(share.share)
            }
            expectEqual(step.requests, UInt64(installs + 2 * addresses))
            // Four standard deviations, and one for small numbers.
            #expect(abs(step.installCount - installs) <= 1 + installs / 5)
            #expect(abs(step.addressCount - addresses) <= 1 + addresses / 5)
        }
        expectEqual(counts.steps.map(\.requests), counts.steps.map(\.requests).sorted())
        expectEqual(counts.steps.last?.requests, 4000)
    }

    @Test func `versions that strangers make up take neither memory nor the place of signed ones`()
    {
        var counts = RuleCounts()
        for number in 0..<100_000 { counts.add(.bare(7, claimed: "\(number)")) }
        for _ in 0..<10 { counts.add(.signed(1, version: "1042")) }
        expectEqual(counts.builds.count, RuleCounts.versionsMax + 2)
        expectEqual(counts.cells.count, RuleCounts.versionsMax + 2)
        expectEqual(counts.requests, 100_010)
        let groups = counts.groups
        expectEqual(groups.first?.build, AppBuild(.claimed, nil))
        expectEqual(groups.first?.build.word, "other")
        let signed = groups.first { $0.build == AppBuild(.signed, AppVersion("1042")) }
        expectEqual(signed?.cells[.verified], 10)
    }

    @Test func `cells are bounded whatever clients combine`() {
        var counts = RuleCounts()
        for refusal in Refusal.allCases {
            for number in 0..<60 {
                counts.add(.signed(1, .refuse(refusal), version: "\(number)"))
                counts.add(.signed(1, .refuse(refusal)))
            }
        }
        // Without versions there is one more for each verdict and source.
        #expect(counts.cells.count <= RuleCounts.cellsMax + 2 * Refusal.allCases.count)
        expectEqual(counts.requests, UInt64(120 * Refusal.allCases.count))
    }

    @Test func `sums are what would have been counted at once`() {
        let some = (1...300).map { ReportedRequest.signed($0, version: "\($0 % 40)") }
        let more = (200...500).map { number in
            ReportedRequest.signed(number, .refuse(.keyRevoked), version: "\(number % 40)")
        }
        let whole = RuleCounts(some + more)
        var sum = RuleCounts(some)
        sum.merge(RuleCounts(more))
        sum.merge(RuleCounts())
        expectEqual(sum.requests, whole.requests)
        expectEqual(sum[.invalid], whole[.invalid])
        expectEqual(sum.installCount, whole.installCount)
        expectEqual(sum.steps.map(\.requests), whole.steps.map(\.requests))
        expectEqual(sum.steps.map(\.installCount), whole.steps.map(\.installCount))
        expectEqual(sum.times, whole.times)
        expectEqual(sum.builds.count, RuleCounts.versionsMax + 1)
    }
}
