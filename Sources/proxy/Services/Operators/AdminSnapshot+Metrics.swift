import Rules
import Telemetry

// The page for Prometheus. Names are API: add, do not rename.
extension AdminSnapshot {
    /// All families of metrics with their types and help texts, as an idle gateway shows them.
    ///
    /// - parties: those that it asks.
    package static func families(_ parties: [any PartyFacts])
        -> [(name: String, type: String, help: String)]
    {
        var idle = AdminSnapshot(
            version: "",
            configuration: ConfigurationFacts(generation: 1, lastReloadAtSeconds: 0),
            loops: [],
            rules: [],
            store: StoreFacts(keys: 0, revokedKeys: 0)
        )
        idle.process = ProcessFacts()
        idle.parties = parties
        let lines = idle.metrics.split(separator: "\n").filter { $0.hasPrefix("# ") }
            .map { $0.split(separator: " ", maxSplits: 3).map(String.init) }
        // A family's help line is before its type line.
        return zip(lines, lines.dropFirst()).compactMap { help, type in
            guard help[1] == "HELP", type[1] == "TYPE" else { return nil }
            return (type[2], type[3], help[3])
        }
    }

    /// All metrics, in the format that every reader accepts.
    var metrics: String { metrics(.prometheus) }

    func metrics(_ format: Exposition.Format) -> String {
        var out = Exposition(format)
        writeProcess(into: &out)
        process?.write(startedAtSeconds: startedAtSeconds, into: &out)
        writeConfiguration(into: &out)
        writeLoops(into: &out)
        out.counters(of: tally)
        out.metric("responses_total", type: "counter", help: "Responses to clients by status.")
        for (status, count) in tally.statusCounts {
            out.sample("responses_total", labels: [("status", String(status))], count)
        }
        writeRules(into: &out)
        writeRuleTimes(into: &out)
        rules.writeGuards(into: &out)
        out.gauge(
            "origin_servers_unknown",
            unknownServers.count,
            help: "Servers of origins whose name has no address."
        )
        origins.write(into: &out)
        writeOriginTimes(into: &out)
        out.gauge(
            "held_memory_bytes",
            held.memoryBytes,
            help: "Bytes of held content in memory, also in files of a folder in memory."
        )
        out.gauge("held_disk_bytes", held.diskBytes, help: "Bytes of held content in files.")
        out.gauge(
            "http2_unsent_bytes",
            held.unsentBytes,
            help: "Bytes of responses that wait for HTTP/2 clients."
        )
        out.gauge("sessions", openSessions, help: "Open sessions.")
        out.distributions(of: tally)
        writeStore(into: &out)
        tls.write(into: &out)
        for party in parties { party.write(into: &out) }
        out.counter(
            "access_log_lines_dropped_total",
            droppedLogLines,
            help: "Lines of the access log that could not be written, or not fast enough."
        )
        out.counter(
            "log_lines_dropped_total",
            droppedMessages,
            help: "Lines of the gateway's own log that standard error did not take, or not in time."
        )
        out.end()
        return out.text
    }

    private func writeLoops(into out: inout Exposition) {
        out.metric("client_connections_open", type: "gauge", help: "Open client connections.")
        for loop in loops {
            let labels = [("event_loop", String(loop.number))]
            out.sample("client_connections_open", labels: labels, loop.openConnections)
        }
        out.metric(
            "origin_connections_pooled",
            type: "gauge",
            help: "Connections to origins that wait for a request."
        )
        for loop in loops {
            let labels = [("event_loop", String(loop.number))]
            out.sample("origin_connections_pooled", labels: labels, loop.pooledConnections)
        }
        out.metric("tunnels_open", type: "gauge", help: "Open tunnels, as of WebSockets.")
        for loop in loops {
            out.sample(
                "tunnels_open",
                labels: [("event_loop", String(loop.number))],
                loop.openTunnels
            )
        }
    }

    private func writeProcess(into out: inout Exposition) {
        out.metric("build_info", type: "gauge", help: "Always 1; the label says what runs.")
        out.sample("build_info", labels: [("version", version)], 1)
        out.gauge(
            "start_time_seconds",
            startedAtSeconds,
            help: "When the process started, Unix time."
        )
        out.gauge("uptime_seconds", uptime / .seconds(1), help: "Time since the process started.")
        out.gauge("draining", isDraining ? 1 : 0, help: "Whether the gateway ends.")
        out.gauge("drained", isDrained ? 1 : 0, help: "Whether operators have drained the gateway.")
    }

    private func writeConfiguration(into out: inout Exposition) {
        out.gauge(
            "configuration_generation",
            configuration.generation,
            help: "Which configuration is served; 1 is the first."
        )
        out.gauge(
            "configuration_last_reload_success",
            configuration.lastReloadError == nil ? 1 : 0,
            help: "0 when the last reload was refused."
        )
        if let seconds = configuration.lastReloadAtSeconds {
            out.gauge(
                "configuration_last_reload_timestamp_seconds",
                seconds,
                help: "When the configuration was last read, with success or without, Unix time."
            )
        }
        out.counter(
            "configuration_reloads_refused_total",
            configuration.refusedReloads,
            help: "Reloads that were refused."
        )
    }

    private func writeRules(into out: inout Exposition) {
        out.metric("rule_info", type: "gauge", help: "Always 1; the labels say what a rule does.")
        for rule in rules {
            let labels = [
                ("rule", rule.id), ("mode", rule.mode), ("rollout", rule.rollout),
                ("origin", rule.origin),
            ]
            out.sample("rule_info", labels: labels, 1)
        }
        out.metric(
            "rollout_orders",
            type: "gauge",
            help: "Always 1; rules that don't obey their file, by an order or their guard."
        )
        for rule in rules where rule.source != .file {
            let labels = [("rule", rule.id), ("source", rule.source.rawValue)]
            out.sample("rollout_orders", labels: labels, 1)
        }
        out.gauge(
            "rollout_orders_unsaved",
            unsavedOrders == nil ? 0 : 1,
            help: "1 while orders about rollouts hold that are not yet on disk."
        )
        out.metric("verdicts_total", type: "counter", help: "Requests by rule and verdict.")
        for (number, rule) in rules.enumerated() {
            let ruleLabels = [("rule", rule.id), ("mode", rule.mode)]
            for (labels, count) in verdicts(of: number) {
                out.sample("verdicts_total", labels: ruleLabels + labels, count)
            }
        }
        let cutShort = "bodies_cut_short_total"
        out.metric(
            cutShort,
            type: "counter",
            help: "Bodies of which an origin got the head and not the end, by what it was told."
        )
        for (number, rule) in rules.enumerated() {
            for (isPassed, word) in [(true, "pass"), (false, "other")] {
                let labels = [("rule", rule.id), ("mode", rule.mode), ("verdict", word)]
                out.sample(
                    cutShort,
                    labels: labels,
                    tally.cutShort(rule: number, isPassed: isPassed)
                )
            }
        }
    }

    /// Writes how the requests of each rule ended, and how long they and their parts took. Rules
    /// without a request are omitted, and rules without such a part.
    private func writeRuleTimes(into out: inout Exposition) {
        let name = "rule_responses_total"
        out.metric(name, type: "counter", help: "Responses by rule and class of status.")
        for (number, rule) in rules.enumerated() {
            for digit in 1...5 {
                let count = tally.responses(rule: number, class: digit)
                guard count > 0 else { continue }
                let labels = [("rule", rule.id), ("origin", rule.origin), ("code", "\(digit)xx")]
                out.sample(name, labels: labels, count)
            }
        }
        for time in RuleTime.allCases {
            out.metric(time.name, type: "histogram", help: time.help)
            for (number, rule) in rules.enumerated() {
                let times = tally.times(time, rule: number)
                guard times.count > 0 else { continue }
                out.histogram(
                    time.name,
                    times,
                    unit: 1e-9,
                    labels: [("rule", rule.id), ("origin", rule.origin)],
                    lines: HistogramLines(
                        time.buckets,
                        exemplars: tally.exemplars(time, rule: number)
                    )
                )
            }
        }
    }

    /// Writes how long each origin took for the first bytes of its responses. Origins without a
    /// request are omitted.
    private func writeOriginTimes(into out: inout Exposition) {
        let name = "origin_response_seconds"
        out.metric(
            name,
            type: "histogram",
            help: "Time from the request's last head byte to the response's first, by origin."
        )
        for origin in origins {
            let times = responseTimes(of: origin)
            guard times.count > 0 else { continue }
            out.histogram(
                name,
                times,
                unit: 1e-9,
                labels: [("origin", origin.name)],
                lines: HistogramLines(Histogram.coarseBuckets)
            )
        }
    }

    private func writeStore(into out: inout Exposition) {
        out.gauge("keys", store.keys, help: "Keys that are known, the revoked ones included.")
        out.gauge("keys_revoked", store.revokedKeys, help: "Keys that were revoked.")
        out.counter(
            "keys_expired_total",
            store.expiredKeys,
            help: "Keys that were deleted since they were long unused."
        )
        out.gauge(
            "store_new",
            store.isNew ? 1 : 0,
            help: "Whether the start found none and made one."
        )
        out.gauge("store_degraded", store.isDegraded ? 1 : 0, help: "Whether it can't be used.")
        out.gauge(
            "commits_pending",
            store.pendingCommits,
            help: "Changes that are not on disk yet."
        )
        out.counter("commit_failures_total", store.failedCommits, help: "Transactions that failed.")
        out.metric("commit_batch_size", type: "histogram", help: "Changes in a transaction.")
        out.histogram("commit_batch_size", store.commitSizes, unit: 1)
        out.metric("commit_seconds", type: "histogram", help: "Time in a transaction.")
        out.histogram("commit_seconds", store.commitDurations, unit: 1e-9)
        store.writeWaiting(into: &out)
        store.writeDatabase(into: &out)
        FleetFacts.write(fleet, into: &out)
    }
}
