internal import Glibc

/// A command's call to the gateway that runs on a database.
enum ChangeCall {
    /// Seconds to wait for an answer. A gateway that starts answers when it has read all keys. A
    /// gateway whose database is locked answers after five seconds.
    static let answerSeconds = 10
    /// The pause between two tries to reach a gateway that has the lock and no socket, since it
    /// starts or ends.
    private static let pauseMilliseconds: Int32 = 20
    private static let triesMax = 100

    /// The result of a call.
    enum Outcome: Equatable {
        /// No gateway runs.
        case nobody
        case answered(ChangeAddress.Answer)
        /// A gateway runs, and has not answered.
        case unheard(String)
    }

    /// Notifies the gateway that keys have changed.
    static func changed(database: String) -> Outcome { make(ChangeAddress.call, database) }

    /// Asks the gateway to write all admissions so far.
    static func write(database: String) -> Outcome { make(ChangeAddress.writeCall, database) }

    private static func make(_ call: String, _ database: String) -> Outcome {
        for _ in 0..<triesMax {
            let descriptor = ChangeAddress.socket(ofDatabase: database) {
                ChangeAddress.bound($0, seconds: answerSeconds)
                return connect($0, $1, $2)
            }
            let code = errno
            let reason = StoreFile.lastError
            if let descriptor {
                defer { Glibc.close(descriptor) }
                return ask(call, descriptor)
            }
            guard StoreLock.holder(ofDatabase: database) != nil else { return .nobody }
            guard [ENOENT, ECONNREFUSED].contains(code) else { return .unheard(reason) }
            poll(nil, 0, pauseMilliseconds)
        }
        return .unheard("\(database)\(ChangeAddress.suffix) is not there, or is another's")
    }

    private static func ask(_ call: String, _ descriptor: Int32) -> Outcome {
        guard ChangeAddress.send(call, to: descriptor) else { return .unheard(StoreFile.lastError) }
        let text = ChangeAddress.receive(from: descriptor)
        guard let answer = ChangeAddress.Answer(text: text) else {
            return .unheard("no answer within \(answerSeconds) seconds")
        }
        return .answered(answer)
    }
}
