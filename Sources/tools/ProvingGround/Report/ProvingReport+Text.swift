// The report for a terminal.
extension ProvingReport.Row {
    /// The line that is printed when the case ends, and below it what was not as expected.
    package var text: String {
        let mark =
            switch ending {
            case .passed: "ok  "
            case .failed: "FAIL"
            case .notOffered: "--  "
            }
        let place = path.padded(to: 46)
        let time = ending == .notOffered ? "" : "\(ExpectedRange.text(seconds)) s"
        var text = "\(mark) \(place) \(time.padded(to: 8)) \(name)"
        if !missing.isEmpty { text += " (not offered: \(missing.joined(separator: ", ")))" }
        return text
    }

    /// Why a case failed, for the end of the run.
    package var explanation: String {
        var lines = ["\(path): \(name)"]
        for miss in misses {
            if !miss.step.isEmpty { lines.append("    \(miss.step)") }
            lines.append("    expected  \(miss.expected)")
            lines.append("    seen      \(miss.seen)")
        }
        lines.append("    why       \(why.split(separator: "\n").joined(separator: " "))")
        lines.append("    read      Sources/client/docs/machine.md#\(section)")
        return lines.joined(separator: "\n")
    }
}

extension ProvingReport {
    /// What failed and why, and the last line.
    package var summary: String {
        let failures = rows.filter { $0.ending == .failed }.map(\.explanation)
        let last =
            "\(client) on \(platform): \(passed) passed, \(failed) failed, "
            + "\(notOffered) not offered"
        return (failures + [last]).joined(separator: "\n\n")
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        count < width ? self + String(repeating: " ", count: width - count) : self
    }
}
