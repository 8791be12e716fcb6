package update

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"aead.dev/minisign"

	"loki/internal/base/fault"
)

const (
	sumsName      = "checksums.txt"
	signatureName = sumsName + ".minisig"
)

type key = minisign.PublicKey

// parseKeys reads public keys, separated by blanks.
func parseKeys(text string) ([]key, error) {
	var keys []key
	for _, word := range strings.Fields(text) {
		var k key
		if err := k.UnmarshalText([]byte(word)); err != nil {
			return nil, fault.Wrap(fault.Config, err, "release_key: %q is not a public key of minisign", word).
				WithHint("it is the second line of the file minisign.pub")
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, fault.New(fault.Config, "this build has no key to verify releases with, so it does not update itself").
			WithHint("set release_key in config.yaml, or LOKI_RELEASE_KEY, to the minisign key of the publisher, the second line of minisign.pub; more: loki --docs updates")
	}
	return keys, nil
}

// checksums returns the verified SHA-256 sums of a release's assets, in hexadecimal, by name.
func (f *feed) checksums(ctx context.Context, r release, keys []key) (map[string]string, error) {
	sums, err := f.document(ctx, r, sumsName)
	if err != nil {
		return nil, fault.Wrap(codeOf(err), err, "cannot read %s of release %s", sumsName, r.Tag).WithHint("nothing was replaced")
	}
	signature, err := f.document(ctx, r, signatureName)
	if errors.Is(err, errStatus(http.StatusNotFound)) {
		return nil, fault.Wrap(fault.Failure, err, "release %s is not signed: %s is missing", r.Tag, signatureName).WithHint("nothing was replaced")
	}
	if err != nil {
		return nil, fault.Wrap(codeOf(err), err, "cannot read %s of release %s", signatureName, r.Tag).WithHint("nothing was replaced")
	}
	if err := verify(sums, signature, r.Tag, keys); err != nil {
		return nil, fault.Wrap(fault.Failure, err, "release %s", r.Tag).
			WithHint("nothing was replaced; do not install this release by hand either before its publisher has explained it")
	}
	return parseSums(string(sums))
}

// verify returns an error unless one of keys has signed sums as those of the release with
// this tag.
func verify(sums, signature []byte, tag string, keys []key) error {
	var s minisign.Signature
	if err := s.UnmarshalText(signature); err != nil {
		return fmt.Errorf("%s is not a signature of minisign: %w", signatureName, err)
	}
	if !slices.ContainsFunc(keys, func(k key) bool { return minisign.Verify(k, sums, signature) }) {
		return fmt.Errorf("the signature of %s is wrong, or by another key than the one that this program trusts", sumsName)
	}
	if !slices.Contains(strings.Fields(s.TrustedComment), tag) {
		return fmt.Errorf("the signature is not for this release, but for %q", s.TrustedComment)
	}
	return nil
}

// parseSums reads lines as sha256sum prints them: sum, blanks and perhaps a star, name.
func parseSums(text string) (map[string]string, error) {
	sums := make(map[string]string)
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if sum, err := hex.DecodeString(words[0]); err != nil || len(sum) != 32 || len(words) != 2 {
			return nil, fault.New(fault.Failure, "%s has a line that is not a checksum: %q", sumsName, strings.TrimSpace(line))
		}
		sums[strings.TrimPrefix(words[1], "*")] = strings.ToLower(words[0])
	}
	return sums, nil
}
