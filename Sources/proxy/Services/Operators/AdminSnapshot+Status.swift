import Cryptography
import Encodings
import KeyStore
import Rules
import Telemetry

// The page for people and scripts. Member names are API: add, do not rename.
extension AdminSnapshot {
    /// The snapshot as a JSON document.
    var status: [UInt8] {
        var out = JSONWriter(.indented)
        out.object { out in
            writeProcess(into: &out)
            writeConfiguration(into: &out)
            writeStore(into: &out)
            tls.write(into: &out)
            for party in parties { party.write(into: &out) }
            fleet?.write(into: &out)
            out.member("connections_open", openConnections)
            out.member("sessions_open", openSessions)
            out.texts("unknown_servers", unknownServers)
            origins.write(into: &out) { out, origin in
                out.summary("response_seconds", responseTimes(of: origin), unit: 1e-9)
            }
            out.member("access_log_lines_dropped", droppedLogLines)
            out.member("log_lines_dropped", droppedMessages)
            writeLoops(into: &out)
            out.member("rollout_orders_unsaved", unsavedOrders)
            writeRules(into: &out)
            writeCounts(into: &out)
        }
        return out.line
    }

    private func writeProcess(into out: inout JSONWriter) {
        out.member("version", version)
        out.member("host", host)
        out.member("started_at", UnixTime(seconds: startedAtSeconds).iso8601)
        out.member("uptime_seconds", uptime / .seconds(1))
        switch drainState {
        case .serving: out.member("state", "serving")
        case .draining(let left):
            out.member("state", "draining")
            out.member("drain_seconds_left", left / .seconds(1))
        }
        if let process {
            out.object("process") { out in
                out.member("cpu_seconds", process.cpuSeconds)
                out.member("resident_bytes", process.residentBytes)
                out.member("open_descriptors", process.openDescriptors)
            }
        }
        out.member("ready", unreadiness.isEmpty)
        out.texts("unready_reasons", unreadiness.map(\.rawValue))
        out.texts("degraded_by", degradations.map(\.rawValue))
    }

    private func writeConfiguration(into out: inout JSONWriter) {
        out.object("configuration") { out in
            out.member("generation", configuration.generation)
            out.member(
                "last_reload_at",
                configuration.lastReloadAtSeconds.map { UnixTime(seconds: $0).iso8601 }
            )
            out.member("last_reload_error", configuration.lastReloadError)
            out.member("reloads_refused", configuration.refusedReloads)
            out.member("rules_digest", configuration.rulesDigest)
        }
    }

    private func writeStore(into out: inout JSONWriter) {
        out.object("store") { out in
            out.member("keys", store.keys)
            out.member("keys_revoked", store.revokedKeys)
            out.member("degraded", store.isDegraded)
            out.member("last_error", store.lastError)
            out.member("commits_pending", store.pendingCommits)
            out.member("commit_failures", store.failedCommits)
            out.summary("commit_batch_size", store.commitSizes, unit: 1)
            out.summary("commit_seconds", store.commitDurations, unit: 1e-9)
            out.member("waiting", store.waiting)
            out.member("turned_away", store.turnedAway)
            guard let database = store.database else { return }
            out.objects("database", of: database.connections) { out, connection in
                out.member("connection", connection.role.rawValue)
                out.member("connected", connection.isConnected)
                out.member("made", connection.made)
                out.member("lost", connection.lost)
                out.member("failures", connection.failures)
                out.summary("round_trip_seconds", connection.roundTrips, unit: 1e-9)
            }
        }
    }

    private func writeLoops(into out: inout JSONWriter) {
        out.objects("event_loops", of: loops) { out, loop in
            out.member("event_loop", loop.number)
            out.member("connections_open", loop.openConnections)
            out.member("origin_connections_pooled", loop.pooledConnections)
            out.member("tunnels_open", loop.openTunnels)
            out.member("requests", loop.tally[Counter.requests])
            out.member("verifications", loop.tally[Counter.verifications])
        }
    }

    private func writeRules(into out: inout JSONWriter) {
        out.objects("rules", of: rules.enumerated()) { out, item in
            let (number, rule) = item
            rule.write(into: &out)
            out.member("bodies_cut_short_after_pass", tally.cutShort(rule: number, isPassed: true))
            writeTimes(of: number, into: &out)
            out.objects("verdicts", of: verdicts(of: number)) { out, verdict in
                for (name, value) in verdict.labels { out.member(name, value) }
                out.member("count", verdict.count)
            }
        }
    }

    /// How the requests of a rule ended, and how long they took.
    private func writeTimes(of rule: Int, into out: inout JSONWriter) {
        out.object("responses") { out in
            for digit in 1...5 {
                let count = tally.responses(rule: rule, class: digit)
                if count > 0 { out.member("\(digit)xx", count) }
            }
        }
        out.summary("request_seconds", tally.times(.request, rule: rule), unit: 1e-9)
    }

    private func writeCounts(into out: inout JSONWriter) {
        out.object("responses") { out in
            for (status, count) in tally.statusCounts { out.member(String(status), count) }
        }
        out.object("counters") { out in
            for counter in Counter.allCases { out.member(counter.name, tally[counter]) }
        }
        out.object("distributions") { out in
            for distribution in Distribution.allCases {
                out.summary(distribution.name, tally[distribution], unit: distribution.unit)
            }
        }
        // With these a page can compute how long requests took since its last query.
        let buckets = tally[Distribution.request].cumulative
        out.objects("request_seconds_buckets", of: buckets) { out, bucket in
            out.member("seconds", Double(bucket.bound) * 1e-9)
            out.member("count", bucket.count)
        }
    }
}

extension JSONWriter {
    /// Writes the main figures of a histogram.
    fileprivate mutating func summary(_ name: String, _ histogram: Histogram, unit: Double) {
        object(name) { out in
            out.member("count", histogram.count)
            let mean = Double(histogram.sum) / Double(max(histogram.count, 1))
            out.member("mean", mean * unit)
            for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1)] {
                out.member(name, Double(histogram.quantile(share)) * unit)
            }
        }
    }
}
