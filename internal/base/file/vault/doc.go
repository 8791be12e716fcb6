// Package vault keeps secrets encrypted in a file.
//
// A secret is a text with a name. The vault file holds the names as they are and the
// secrets encrypted; a password, which is never stored in it, opens it. The file and the
// place of the password are found out when a secret is asked for: [New] does nothing, and
// [Vault.List] needs no password.
//
// # How it is encrypted
//
// The vault has a key, 32 random bytes, that is made with the first secret and stays. The
// file holds the key encrypted with the password by age (https://age-encryption.org/v1), in
// its scrypt form. Each secret is encrypted with the key by XChaCha20-Poly1305
// (draft-irtf-cfrg-xchacha-03) under a random nonce of 24 bytes, with its name as
// associated data. So
//
//   - opening costs one scrypt, however many secrets are asked for, and a change touches
//     one entry;
//   - a secret that was changed, cut, or put under another name is refused, and adding
//     one takes the password. (With age's own public keys, the public key would be
//     enough.)
//
// The file cannot show that it is old: putting back an earlier state of it, or of one
// entry, goes unnoticed, and so does the removal of an entry, until it is asked for.
//
// The work factor of scrypt is 2^15 (32 MiB, about 0.1 s), which is less than age's own
// choice: the vault is opened at every start, the password need not be typed and can
// therefore be long, and the ones that [Vault.CreatePassword] makes have 26 random
// characters.
//
// # Older files
//
// An older form of the file, a plain mapping of names to envelopes, is read too. It is
// replaced by the present one when the first secret is added or updated. See envelope.go.
package vault
