import Services

/// Says what a front changes.
struct FrontReport {
    let front: FrontAddress

    func findings(
        _ trials: [(trial: FrontTrial, target: String)],
        _ seen: [TrialSighting?],
        answers: [FrontTrial.Kind: FrontCheck.Answer]
    ) -> [DoctorFinding] {
        guard let form = seen.compactMap(\.self).first?.form else {
            return [
                .error(
                    .front,
                    "no request through \(front.authority) arrives at this gateway: "
                        + text(of: answers[.plain]),
                    next: FrontAdvice.text(.absent, form: "")
                )
            ]
        }
        // What was said of one trial is not said again of the next ones.
        var told: Set<FrontChange> = []
        return zip(trials, seen).flatMap { sent, seen -> [DoctorFinding] in
            let (trial, target) = sent
            guard let seen else { return [absence(of: trial, form, answers[trial.kind])] }
            let changes = trial.changes(seen, target: target, host: front.authority)
            guard !changes.isEmpty else {
                let size = trial.content.isEmpty ? "" : " with \(trial.content.count) bytes"
                let how = form.isEmpty ? "forwarded" : "asked about by \(form)"
                return [.ok(.front, "\(trial.kind.rawValue): \(how)\(size), unchanged")]
            }
            return changes.filter { told.insert($0).inserted }.map {
                finding($0, trial, target: target, sighting: seen)
            }
        }
    }

    private func text(of answer: FrontCheck.Answer?) -> String {
        switch answer {
        case .success(let status): "the front answers \(status)"
        case .failure(let fault): "the front gives no answer (\(fault))"
        case nil: "it could not be sent"
        }
    }

    /// The front, or the gateway's parser, has answered by itself.
    private func absence(
        of trial: FrontTrial,
        _ form: String,
        _ answer: FrontCheck.Answer?
    ) -> DoctorFinding {
        let found = "\(trial.kind.rawValue): does not arrive; \(text(of: answer))"
        func warning(_ topic: FrontAdvice.Topic) -> DoctorFinding {
            .warning(.front, found, next: FrontAdvice.text(topic, form: form))
        }
        switch trial.kind {
        case .plain, .headers: return warning(.absent)
        case .spelling: return .ok(.front, "\(found), so no such path or query is read in two ways")
        case .method: return warning(.method)
        case .fields: return .error(.front, found, next: FrontAdvice.text(.long, form: form))
        case .content, .chunks: return warning(.content)
        case .gzip: return warning(.decoded)
        case .large:
            return .warning(
                .front,
                "\(found) to \(trial.content.count) bytes, which rules allow",
                next: FrontAdvice.text(.size, form: form)
            )
        }
    }

    private func finding(
        _ change: FrontChange,
        _ trial: FrontTrial,
        target: String,
        sighting: TrialSighting
    ) -> DoctorFinding {
        let (count, form) = (trial.content.count, sighting.form)
        func error(_ found: String, _ topic: FrontAdvice.Topic) -> DoctorFinding {
            let next = FrontAdvice.text(topic, form: form)
            return .error(.front, "\(trial.kind.rawValue): \(found)", next: next)
        }
        func warning(_ found: String, _ topic: FrontAdvice.Topic) -> DoctorFinding {
            let next = FrontAdvice.text(topic, form: form)
            return .warning(.front, "\(trial.kind.rawValue): \(found)", next: next)
        }
        switch change {
        case .method(let method): return error("\(trial.method) arrives as \(method)", .method)
        case .path(let seen): return warning(spelling(target, seen, of: trial), .path)
        case .query(let seen): return warning(spelling(target, seen, of: trial), .query)
        case .host(let host): return warning("\(front.authority) arrives as \(host)", .host)
        case .fieldsLost(let names):
            return error("\(names.joined(separator: ", ")) lost on the way", .fields)
        case .fieldsRewritten(let names):
            return error("\(names.joined(separator: ", ")) rewritten on the way", .fields)
        case .contentLost where trial.kind == .large:
            return warning("none of \(count) bytes arrive, so they are refused", .size)
        case .contentLost where !form.isEmpty && !sighting.asksWithContent:
            return warning("none of \(count) bytes arrive with the question", .content)
        case .contentLost: return error("none of \(count) bytes arrive", .content)
        case .contentCut(let seen):
            let part = seen.map { "only \($0)" } ?? "not all"
            return error("\(part) of \(count) bytes arrive", .size)
        case .contentDecoded:
            return error("Content-Encoding: gzip is decoded: signatures don't fit", .decoded)
        case .contentRewritten: return error("\(count) bytes arrive as others", .rewritten)
        case .contentUnsure:
            return error("all bytes arrive, and the gateway can't know it", .unsure)
        case .lengthWritten:
            return .ok(
                .front,
                "\(trial.kind.rawValue): arrives with a length, unchanged: no signature covers "
                    + "chunks"
            )
        case .chunksWritten:
            return .ok(
                .front,
                "\(trial.kind.rawValue): arrives in chunks, unchanged: no signature covers a length"
            )
        }
    }

    /// Names both targets, without the path of all trials where that came as it was sent.
    private func spelling(_ target: String, _ seen: String, of trial: FrontTrial) -> String {
        var (sent, seen) = (target, seen)
        let tail = trial.path + trial.query
        let start = target.dropLast(tail.count)
        if !tail.isEmpty, seen.hasPrefix(start) {
            (sent, seen) = (tail, String(seen.dropFirst(start.count)))
        }
        return "\(sent) arrives as \(seen): signed as sent, it is refused"
    }
}
