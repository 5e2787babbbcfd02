// Tests for people: services that say of a client's token whether a person has passed their test.
// As values and machines without I/O, clock or lock.
//
//   SiteverifySettings   one service of the section `proofs`, of `kind: siteverify`
//   SiteverifyCall       a question about a token
//   SiteverifyCalls      the services as a party that is called: how a question is written
//   SiteverifyAnswer     what a service answers, read strictly
//   SiteverifyVerdict    what the answer means for the token, and whose fault it is
//
// Two shapes exist. reCAPTCHA, hCaptcha and Turnstile take a form and answer with `success`.
// reCAPTCHA Enterprise takes JSON and answers with the token's properties and a score.
//
// A client chooses its token, and a rule may forward a request whose token can't be checked. So a
// reply that a token may have caused never counts as a failed party: only what no token can cause
// does. A token that no service makes is not sent at all.
//
// `Gateway/SiteverifyCheck` performs the calls.
