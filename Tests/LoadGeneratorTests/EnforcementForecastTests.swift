import ConfigurationReading
import Cryptography
import Encodings
import Expectations
import Rules
import Testing
import Verification

@testable import LoadGenerator

/// What a run expects of requests with a fault, by mode and rollout of the rule.
@Suite struct EnforcementForecastTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let faults = Sending.allCases.filter { $0.kind != .good }
    private static let byKey: Set<Sending> = [.replayed, .staleCounter, .staleEpoch, .staleExpired]

    private static func rule(_ mode: String) throws -> Rule {
        let configuration = try #require(
            RequestTemplateTests.configuration("sign: [method, target], rollout: \(mode)")
        )
        let sketch = RequestSketch(method: "GET", url: "/a")
        guard case .rule(let rule) = configuration.rule(for: sketch) else {
            throw LoadError("no rule")
        }
        return rule
    }

    private static func finding(
        _ forecast: EnforcementForecast,
        _ sending: Sending,
        _ bucket: Bucket?,
        at time: UnixTime = now
    ) -> EnforcementForecast.Finding {
        forecast.finding(sending, bucket, from: time, to: time)
    }

    @Test func `where all keys are enforced each fault is refused, at 0 % none is`() throws {
        let whole = EnforcementForecast(try Self.rule("{ percent: 100% }"), by: .assertion)
        let none = EnforcementForecast(try Self.rule("{ percent: 0% }"), by: .assertion)
        #expect(!whole.isPartial)
        for sending in Self.faults {
            expectEqual(Self.finding(whole, sending, nil), .refused)
            expectEqual(Self.finding(none, sending, nil), .admitted)
        }
    }

    @Test func `at 5 % the bucket of the key that has signed decides, as at the gateway`() throws {
        let rule = try Self.rule("{ percent: 5% }")
        let forecast = EnforcementForecast(rule, by: .assertion)
        #expect(forecast.isPartial)
        var refused = 0
        for number in 0..<2_000 {
            let digest = SHA256.digest(of: Array("key \(number)".utf8)).array
            let bucket = try #require(forecast.bucket(of: Base64.encode(digest)))
            let isEnforced = rule.rollout.enforces(digest.span, at: Self.now)
            for sending in Self.faults {
                let expected: EnforcementForecast.Finding =
                    !Self.byKey.contains(sending) ? .unknown : isEnforced ? .refused : .admitted
                expectEqual(Self.finding(forecast, sending, bucket), expected)
            }
            refused += isEnforced ? 1 : 0
        }
        #expect((40...180).contains(refused), "\(refused)")
    }

    @Test func `a fault that is counted by address may be refused or admitted`() throws {
        let rule = try Self.rule("{ percent: 5%, by: address }")
        let forecast = EnforcementForecast(rule, by: .assertion)
        let key = Base64.encode([UInt8](repeating: 1, count: 32))
        #expect(forecast.bucket(of: key) == nil)
        for sending in Self.faults {
            expectEqual(Self.finding(forecast, sending, nil), .unknown)
        }
    }

    @Test func `a replay in a session may be refused or admitted, since the session may be over`()
        throws
    {
        let forecast = EnforcementForecast(try Self.rule("{ percent: 5% }"), by: .session)
        let bucket = forecast.bucket(of: Base64.encode([UInt8](repeating: 1, count: 32)))
        expectEqual(Self.finding(forecast, .replayed, bucket), .unknown)
    }

    @Test func `while a share grows, only keys that it passes just now are uncertain`() throws {
        let ramp = "{ from: 2027-01-01, to: 2027-01-11, start: 0%, end: 100% }"
        let rule = try Self.rule(ramp)
        let forecast = EnforcementForecast(rule, by: .assertion)
        let key = Base64.encode([UInt8](repeating: 7, count: 32))
        let bucket = try #require(forecast.bucket(of: key))
        let begin = try #require(rule.rollout.admission(of: bucket))
        let (before, after) = (begin.seconds - 60, begin.seconds + 60)
        func at(_ seconds: Int64) -> EnforcementForecast.Finding {
            Self.finding(forecast, .replayed, bucket, at: UnixTime(seconds: seconds))
        }
        expectEqual(at(before), .admitted)
        expectEqual(at(begin.seconds), .unknown)
        expectEqual(at(after), .refused)
    }
}
