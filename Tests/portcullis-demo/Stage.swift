import AppAttest
import AppleStandIn
import ConfigurationReading
import Cryptography
import Dispatch
import Gateway
import Glibc
import SoftwareAuthenticator
import Synchronization

/// The parts that the steps share: origin, gateway, authority, a phone, and the narrator.
final class Stage {
    let narrator: Narrator
    let folder: DemoFolder
    let origin: Origin
    /// Stands in for Apple's services.
    let apple: StandInServer
    /// Makes tokens of Play Integrity, as Google does for the gateway's keys.
    let playConsole = SoftwarePlayConsole()
    /// Makes devices that the gateway's configuration trusts.
    let authority: SoftwareAuthority
    /// Another phone, whose app has the client package.
    let app: PackagedApp
    /// Where clients connect, on 127.0.0.1.
    let port: UInt16
    /// Where operators connect, on 127.0.0.1.
    let adminPort: UInt16
    /// The phone of the story.
    var phone: Phone
    /// The request that was admitted, so that it can be sent again.
    var admitted = Call("POST", "/v1/orders")
    /// Requests that the rule of a quarter refused.
    var quarterRefusals = 0

    let gateway: GatewayServer
    let ending: Ending

    /// Starts all parts: folder, authority, origin, configuration, gateway, in this order.
    init(_ narrator: Narrator, keepsFolder: Bool) throws {
        self.narrator = narrator
        folder = try DemoFolder(isKept: keepsFolder)
        ending = Ending(folder)
        do {
            authority = SoftwareAuthority(madeAt: Self.now)
            _ = try folder.write("software-root.pem", authority.rootPEM)
            _ = try folder.write("decrypt.key", playConsole.decryptionKey)
            _ = try folder.write("verify.key", playConsole.verificationKey)
            app = try PackagedApp(folder)
            _ = try folder.write("package-root.pem", app.rootPEM)
            origin = try Origin()
            let team = StandInTeam()
            apple = try Self.apple(folder, team)
            let text = DemoConfiguration.text(origin: origin.port, apple, team)
            let file = try folder.write("portcullis.yaml", text)
            gateway = try Self.gateway(file, ending)
            port = try Self.port(of: gateway.addresses.first)
            adminPort = try Self.port(of: gateway.adminAddresses.first)
        } catch {
            _ = folder.remove()
            throw error
        }
        phone = Phone(Self.device(authority).makeKey(), gateway: port)
        narrator.say("origin   127.0.0.1:\(origin.port), which records what reaches it")
        narrator.say("gateway  127.0.0.1:\(port), in front of it")
        narrator.say("admin    127.0.0.1:\(adminPort)")
    }

    /// A phone with this key, which is enrolled.
    func enrolled(_ key: SoftwareKey) throws -> Phone {
        let phone = Phone(key, gateway: port)
        let call = phone.enrolment(try phone.challenge("enrolment"), at: Self.now)
        let answer = try call.send(to: port)
        guard answer.status == 201 else {
            throw StoryFault("a phone can't be enrolled: \(answer.status) \(answer.text)")
        }
        return phone
    }

    var anotherDevice: SoftwareDevice { Self.device(authority) }

    var androidPhone: SoftwareDevice {
        SoftwareDevice(authority: authority, package: Phone.package, phone: SoftwarePhone())
    }

    /// The wall clock.
    static var now: UnixTime { UnixTime(seconds: Int64(time(nil))) }

    private static func device(_ authority: SoftwareAuthority) -> SoftwareDevice {
        SoftwareDevice(
            authority: authority,
            appID: Phone.appID,
            environment: .production,
            shape: .iOS27(category: .appStore, bundleVersion: "1314")
        )
    }

    private static func apple(
        _ folder: DemoFolder,
        _ team: StandInTeam
    ) throws -> StandInServer {
        _ = try folder.write("key.p8", team.p8)
        do {
            let apple = try StandInServer(folder: folder.path)
            apple.add(team)
            return apple
        } catch {
            throw StoryFault("the stand-in for Apple: \(error)")
        }
    }

    private static func gateway(
        _ file: String,
        _ ending: Ending
    ) throws -> GatewayServer {
        let loaded = ConfigurationLoader.load(file)
        guard let configuration = loaded.configuration else {
            throw StoryFault(loaded.problems.map(\.text).joined(separator: "\n"))
        }
        var surroundings = GatewaySurroundings()
        surroundings.ownsProcess = false
        surroundings.exit = { ending.gatewayEnded($0) }
        do throws(GatewayError) {
            return try GatewayServer.run(configuration, file: file, surroundings: surroundings)
        } catch {
            throw StoryFault(error.description)
        }
    }

    private static func port(of address: String?) throws -> UInt16 {
        guard let text = address?.split(separator: ":").last, let port = UInt16(text) else {
            throw StoryFault("the gateway does not listen")
        }
        return port
    }

    func play(_ steps: [any Step]) throws {
        do {
            for step in steps {
                narrator.begin(step.title)
                try step.play(on: self)
            }
        } catch {
            try end()
            throw error
        }
    }

    /// Sends a request and prints both sides of it.
    func exchange(_ call: Call, showing names: [String] = []) throws -> Answer {
        narrator.sent(call, showing: names)
        let answer = try call.send(to: port)
        narrator.answered(answer)
        return answer
    }

    /// Checks that no request reached the origin unannounced.
    func claimOriginSawNothing() {
        narrator.claim("the origin saw nothing of it", origin.untoldCount == 0)
    }
}

/// One step of the story.
protocol Step: Sendable {
    /// What happens, in a few words.
    var title: String { get }

    /// Plays the step, prints what happens, and checks its claims.
    func play(on stage: Stage) throws
}

/// The steps in their order.
enum Story {
    static let steps: [any Step] = [
        UnprovenRequest(), FirstEnrolment(), AdmittedRequest(), ReplayedRequest(),
        TamperedRequest(), AndroidRequest(), PlayToken(), StreamedUpload(), RevokedKey(),
        SecondTrial(), PartialRollout(), ClientPackage(), CountedVerdicts(),
    ]
}

// How a run ends.
extension Stage {
    /// Ends the gateway, waits for it, and removes the folder.
    func end() throws {
        narrator.begin("An orderly end")
        let status = ending.await { gateway.stop() }
        apple.stop()
        narrator.claim("the gateway drained, closed its store and ended well", status == 0)
        tellLog()
        if let path = folder.remove() { narrator.say("   left: \(path)") }
    }

    private func tellLog() {
        let log = folder.text("access.log")
        guard let line = log.split(separator: "\n").first(where: { $0.contains("\"pass\"") }) else {
            return
        }
        narrator.say("   a line of the access log:\n     \(line)")
        let cutShort = log.split(separator: "\n").filter { $0.contains(#""content":"cut-short""#) }
        narrator.claim(
            "one line says that content was cut short: that of the damaged upload",
            cutShort.count == 1 && cutShort[0].contains("upload-photo")
        )
        let secrets = admitted.fields.filter { $0.name.hasPrefix("App-Attest-") }.map(\.value)
        narrator.claim(
            "no line holds a key id, a challenge or an assertion",
            !secrets.isEmpty && !secrets.contains { log.contains($0) }
        )
    }

    /// Serves until the process gets a signal.
    func serveOn() throws {
        let challenge = try phone.challenge("assertion")
        let call = phone.signed(.order, challenge)
        let fields = call.fields.map { " \\\n     -H '\($0.name): \($0.value)'" }.joined()
        let base = "http://127.0.0.1:\(port)"
        print(
            """

            Serving. Things to try from another terminal; Control-C ends.

               curl -i -d '{"item":"lamp"}' \(base)/v1/orders
               curl -i -X POST \(base)\(Phone.endpoints)/challenges
               curl http://127.0.0.1:\(adminPort)/status
               curl http://127.0.0.1:\(adminPort)/metrics
               portcullis check \(folder.file("portcullis.yaml"))
               portcullis keys list --config \(folder.file("portcullis.yaml"))

            Good once, within five minutes:

               curl -i -d '{"item":"lamp"}'\(fields) \\
                 \(base)/v1/orders
            """
        )
        fflush(nil)
        ending.awaitSignal()
    }
}

/// The end of the gateway, which comes when the story is over or when a signal is sent.
final class Ending: Sendable {
    private struct State {
        var isAwaited = false
        var status: Int32?
    }

    private let state = Mutex(State())
    // The style has no semaphores. Here the story waits for the gateway, whose event loops go on.
    private let ended = DispatchSemaphore(value: 0)
    private let folder: DemoFolder

    init(_ folder: DemoFolder) { self.folder = folder }

    /// Records that the gateway has ended; called on its control queue.
    func gatewayEnded(_ status: Int32) {
        let isAwaited = state.withLock { state in
            state.status = status
            return state.isAwaited
        }
        guard isAwaited else {
            // A signal came in the middle of the story.
            _ = folder.remove()
            exit(130)
        }
        ended.signal()
    }

    /// Ends the gateway, unless it has ended already, and waits.
    ///
    /// - Returns: the exit status that it would have had.
    func await(_ stop: () -> Void) -> Int32? {
        let status = state.withLock { state in
            state.isAwaited = true
            return state.status
        }
        if let status { return status }
        stop()
        guard ended.wait(timeout: .now() + .seconds(60)) == .success else { return nil }
        return state.withLock { $0.status }
    }

    /// Waits until a signal ends the gateway.
    func awaitSignal() {
        state.withLock { $0.isAwaited = true }
        ended.wait()
    }
}
