// The parties that the gateway asks, a folder for each: its settings, its calls, what its answers
// mean.
//
//   Apple           what Receipts and DeviceCheck share: keys of teams, hosts, the form of a call
//   Receipts        newer receipts of keys for older ones
//   DeviceCheck     the two bits of a device
//   GoogleList      Google's list of revoked certificates
//   PlayIntegrity   the tokens that Google's Play Integrity gives to Android apps
//   Siteverify      tests for people: reCAPTCHA, hCaptcha, Turnstile
//
//   UsedTokens      tokens of clients, each of which is good for one request
//   TokenParties    the parties that know tokens, and the limits of calls to them
//
// `OutboundCalls` has what their calls share.
