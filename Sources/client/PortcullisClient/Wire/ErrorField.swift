/// `App-Attest-Error`: the gateway itself made this answer. `signature-mismatch;next=none`.
///
/// The gateway deletes every copy of the field that an origin sends, so an answer with it is the
/// gateway's, whatever its status.
struct ErrorField: Hashable, Sendable {
    let refusal: GatewayRefusal

    init?(_ text: String) {
        guard let item = FieldItem(text) else { return nil }
        refusal = GatewayRefusal(
            reason: item.word,
            next: item["next"].flatMap(GatewayRefusal.Next.init) ?? .none
        )
    }
}
