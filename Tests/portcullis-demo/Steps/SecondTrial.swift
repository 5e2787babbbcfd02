import AppleStandIn
import KeyStore
import SoftwareAuthenticator

/// A free trial for each device, however often its app is installed.
struct SecondTrial: Step {
    let title = "A second free trial is refused after a reinstall (DeviceCheck)"

    func play(on stage: Stage) throws {
        var phone = try stage.enrolled(stage.anotherDevice.makeKey())
        let first = try stage.exchange(try trial(&phone, on: "phone"))
        stage.narrator.originSaw(try stage.origin.next())
        stage.narrator.claim("the first trial is granted", first.status == 200)
        stage.narrator.claim(
            "the origin's App-Attest-Device-Bits: 1,- stays with the gateway",
            first["App-Attest-Device-Bits"] == nil
        )
        let isKept = stage.apple.wait { [apple = stage.apple] _ in
            apple.bits(of: "phone").map { $0 == (true, false) } ?? false
        }
        stage.narrator.claim("Apple keeps bit 0 of the device; nobody waited for it", isKept)

        phone = try stage.enrolled(stage.anotherDevice.makeKey())
        stage.narrator.say("   the app is deleted and installed anew: it has another key")
        let second = try stage.exchange(try trial(&phone, on: "phone"))
        stage.narrator.claim(
            "403 device-flagged: the device is the same",
            second.status == 403 && second.problem("reason") == "device-flagged"
        )
        stage.claimOriginSawNothing()
        let other = try stage.exchange(try trial(&phone, on: "tablet"))
        stage.narrator.originSaw(try stage.origin.next())
        stage.narrator.claim("another device has its trial", other.status == 200)
    }

    private func trial(_ phone: inout Phone, on device: String) throws -> Call {
        var call = phone.signed(Call("POST", "/v1/trial"), try phone.challenge("assertion"))
        call.fields.append(("App-Attest-Device-Token", StandInServer.deviceToken(device, .test)))
        return call
    }
}
