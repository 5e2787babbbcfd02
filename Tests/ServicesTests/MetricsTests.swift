import Expectations
import KeyStore
import Parties
import Rules
import Telemetry
import Testing

@testable import Services

@Suite struct MetricsTests {
    private func lines(_ snapshot: AdminSnapshot) -> [String] {
        snapshot.metrics.split(separator: "\n").map(String.init)
    }

    @Test(arguments: [
        #"portcullis_build_info{version="1.2.3"} 1"#,
        "portcullis_start_time_seconds 1776679200",
        "portcullis_uptime_seconds 90.5",
        "portcullis_draining 0",
        "portcullis_configuration_generation 7",
        "portcullis_configuration_last_reload_success 1",
        "portcullis_configuration_last_reload_timestamp_seconds 1776679260",
        "portcullis_configuration_reloads_refused_total 1",
        #"portcullis_client_connections_open{event_loop="0"} 10"#,
        #"portcullis_client_connections_open{event_loop="1"} 11"#,
        "portcullis_requests_total 11",
        #"portcullis_responses_total{status="200"} 2"#,
        #"portcullis_responses_total{status="403"} 1"#,
        #"portcullis_rule_info{rule="orders",mode="enforce",rollout="25%",origin="shop"} 1"#,
        #"portcullis_verdicts_total{rule="orders",mode="enforce",verdict="pass",reason="","#
            + #"enforced="false",environment="genuine"} 2"#,
        #"portcullis_verdicts_total{rule="default",mode="observe",verdict="refuse","#
            + #"reason="key-unknown",enforced="false",environment="genuine"} 1"#,
        "portcullis_verification_seconds_count 2",
        "portcullis_keys 41",
        "portcullis_keys_revoked 2",
        "portcullis_store_degraded 0",
        "portcullis_commits_pending 3",
        "portcullis_commit_failures_total 0",
        "portcullis_access_log_lines_dropped_total 6",
    ])
    func `a sample is shown`(line: String) {
        #expect(lines(.sample()).contains(line))
    }

    @Test func `an order about a rule is shown, and a rule that obeys its file has none`() {
        var snapshot = AdminSnapshot.sample()
        func orders() -> [String] {
            lines(snapshot).filter { $0.hasPrefix("portcullis_rollout_orders{") }
        }
        expectEqual(orders(), [])
        snapshot.rules[0].source = .command
        expectEqual(orders(), [#"portcullis_rollout_orders{rule="orders",source="command"} 1"#])
        snapshot.rules[1].source = .emergency
        expectEqual(
            orders().last,
            #"portcullis_rollout_orders{rule="default",source="emergency"} 1"#
        )
    }

    @Test func `orders that are not on disk are told as a number and with the reason`() throws {
        var snapshot = AdminSnapshot.sample()
        let name = "portcullis_rollout_orders_unsaved"
        #expect(lines(snapshot).contains("\(name) 0"))
        snapshot.unsavedOrders = "No space left on device"
        #expect(lines(snapshot).contains("\(name) 1"))
        let status = String(decoding: snapshot.status, as: UTF8.self)
        #expect(status.contains(#""rollout_orders_unsaved": "No space left on device""#))
    }

    @Test func `the families of limited connections are there where nothing is limited`() {
        let names = AdminSnapshot.families(idlePartyFacts).map { $0.name }
        for name in ["server_connections", "server_connections_max", "requests_waiting"] {
            let family = "portcullis_origin_" + name
            #expect(names.contains(family))
            #expect(!lines(.sample()).contains { $0.hasPrefix(family + "{") })
        }
    }

    @Test func `the time of an origin is that of all rules which forward to it`() {
        var snapshot = AdminSnapshot.sample()
        func counts() -> [String] {
            lines(snapshot).filter { $0.hasPrefix("portcullis_origin_response_seconds_count") }
        }
        snapshot.origins = ["shop", "idle"].map { OriginFacts(name: $0, servers: []) }
        expectEqual(counts(), [#"portcullis_origin_response_seconds_count{origin="shop"} 3"#])
        snapshot.origins = ["shop", "media"].map { OriginFacts(name: $0, servers: []) }
        snapshot.rules[1].origin = "media"
        expectEqual(
            counts(),
            [
                #"portcullis_origin_response_seconds_count{origin="shop"} 2"#,
                #"portcullis_origin_response_seconds_count{origin="media"} 1"#,
            ]
        )
        #expect(lines(snapshot).contains("portcullis_origin_first_byte_seconds_count 3"))
    }

    @Test func `verdicts that did not occur are left out`() {
        let verdicts = lines(.sample()).filter { $0.hasPrefix("portcullis_verdicts_total") }
        expectEqual(verdicts.count, 2)
    }

    @Test func `every sample belongs to a family that was declared once, right before it`() {
        var families: [String] = []
        for line in lines(.sample()) {
            let words = line.split(separator: " ").map(String.init)
            if line.hasPrefix("# TYPE ") { families.append(words[2]) }
            guard !line.hasPrefix("#"), let family = families.last else { continue }
            let name = words[0].prefix { $0 != "{" }
            #expect(["", "_bucket", "_sum", "_count"].map { family + $0 }.contains(String(name)))
        }
        expectEqual(Set(families).count, families.count)
        #expect(families.count > Counter.allCases.count + Distribution.allCases.count)
    }

    @Test func `batch sizes are plain numbers and durations are seconds`() {
        var store = StoreFacts(keys: 0, revokedKeys: 0)
        for size: UInt64 in [1, 64] { store.commitSizes.add(size) }
        store.commitDurations.add(500_000_000)
        let shown = lines(.sample(store: store))
        #expect(shown.contains(#"portcullis_commit_batch_size_bucket{le="1.0"} 1"#))
        #expect(shown.contains(#"portcullis_commit_batch_size_bucket{le="127.0"} 2"#))
        #expect(shown.contains("portcullis_commit_batch_size_sum 65.0"))
        #expect(shown.contains("portcullis_commit_seconds_sum 0.5"))
    }

    @Test func `the connections to a database show, and nothing of them where there is none`() {
        var store = StoreFacts(keys: 0, revokedKeys: 0)
        #expect(!lines(.sample(store: store)).contains { $0.hasPrefix("portcullis_database") })
        var reader = DatabaseStatistics.Connection(.reader)
        reader.isConnected = true
        (reader.made, reader.lost, reader.failures) = (5, 4, 3)
        (reader.serializationRetries, reader.deadlockRetries) = (2, 1)
        reader.roundTrips.add(1_000_000)
        var writer = DatabaseStatistics.Connection(.writer)
        writer.deadlockRetries = 6
        store.database = DatabaseStatistics([writer, reader, .init(.listener)])
        (store.waiting, store.turnedAway, store.lookUps, store.foundLookUps) = (7, 8, 9, 4)
        let shown = lines(.sample(store: store))
        for line in [
            #"portcullis_database_connected{connection="reader"} 1"#,
            #"portcullis_database_connected{connection="writer"} 0"#,
            #"portcullis_database_connections_total{connection="reader"} 5"#,
            #"portcullis_database_connections_lost_total{connection="reader"} 4"#,
            #"portcullis_database_connect_failures_total{connection="reader"} 3"#,
            #"portcullis_database_retries_total{cause="serialization"} 2"#,
            #"portcullis_database_retries_total{cause="deadlock"} 7"#,
            #"portcullis_database_round_trip_seconds_sum{connection="reader"} 0.001"#,
            #"portcullis_database_round_trip_seconds_count{connection="writer"} 0"#,
            "portcullis_store_waiting 7", "portcullis_store_turned_away_total 8",
            #"portcullis_key_look_ups_total{found="yes"} 4"#,
            #"portcullis_key_look_ups_total{found="no"} 5"#,
        ] { #expect(shown.contains(line), "\(line)") }
        #expect(!shown.contains { $0.contains(#"seconds_count{connection="listener"}"#) })
    }

    @Test func `a loop's turns are seconds, the sockets served in them plain numbers`() {
        var snapshot = AdminSnapshot.sample()
        snapshot.tally.add(.loopIteration, nanoseconds: 250_000_000)
        snapshot.tally.add(.iterationEvents, size: 40)
        snapshot.tally.add(.loopPolls, 2)
        let shown = lines(snapshot)
        #expect(shown.contains("portcullis_event_loop_iteration_seconds_sum 0.25"))
        #expect(shown.contains(#"portcullis_event_loop_iteration_events_bucket{le="31.0"} 0"#))
        #expect(shown.contains(#"portcullis_event_loop_iteration_events_bucket{le="63.0"} 1"#))
        #expect(shown.contains("portcullis_event_loop_iteration_events_sum 40.0"))
        #expect(shown.contains("portcullis_event_loop_polls_total 2"))
    }

    @Test func `a refused reload, a degraded store and a drain show`() {
        let snapshot = AdminSnapshot.sample(
            store: StoreFacts(keys: 1, revokedKeys: 0, isDegraded: true),
            drainState: .draining(left: .seconds(3)),
            lastReloadError: "rules/10.yaml:3 …"
        )
        let shown = lines(snapshot)
        #expect(shown.contains("portcullis_configuration_last_reload_success 0"))
        #expect(shown.contains("portcullis_store_degraded 1"))
        #expect(shown.contains("portcullis_draining 1"))
    }

    @Test func `a guard shows how near it is to falling, and that it has fallen`() {
        var snapshot = AdminSnapshot.sample()
        #expect(!lines(snapshot).contains { $0.hasPrefix("portcullis_guard_") })
        snapshot.rules[0].fallback = GuardFacts(
            text: "falls at 2%",
            installs: 700,
            refused: 20,
            falls: 3,
            hasFallen: true
        )
        let shown = lines(snapshot)
        #expect(shown.contains(#"portcullis_guard_falls_total{rule="orders"} 3"#))
        #expect(shown.contains(#"portcullis_guard_fallen{rule="orders"} 1"#))
        #expect(shown.contains(#"portcullis_guard_installs{rule="orders"} 700"#))
        #expect(shown.contains(#"portcullis_guard_installs_refused{rule="orders"} 20"#))
        #expect(!shown.contains { $0.hasPrefix("portcullis_guard_") && $0.contains("default") })
    }

    @Test func `without a reload its time is left out`() {
        var snapshot = AdminSnapshot.sample()
        snapshot.configuration = ConfigurationFacts(generation: 1)
        #expect(!snapshot.metrics.contains("last_reload_timestamp"))
    }
}
