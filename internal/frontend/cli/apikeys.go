package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/file/atomicfile"
	"loki/internal/base/text"
	"loki/internal/frontend/command/display"
	"loki/internal/service/auth"
	"loki/internal/setup/config"
)

// keyInfo is a key in machine output.
type keyInfo struct {
	ID      string       `json:"key_id"`
	Subject string       `json:"subject"`
	Scopes  []auth.Scope `json:"scopes"`
	Key     string       `json:"key,omitempty"` // of a new one
}

// checkSubject returns the error for a subject that a flag names and that cannot be one.
func checkSubject(flag, subject string) error {
	if err := auth.CheckSubject(subject); err != nil {
		return fault.New(fault.Usage, "flag %s: %v", flagText(flag), err)
	}
	return nil
}

// makeKey makes a key of the server, prints it and keeps its hash in the configuration.
func (c *command) makeKey(ctx context.Context) error {
	subject := c.opts.value
	if err := checkSubject("api-key", subject); err != nil {
		return err
	}
	scopes, err := parseScopes(cmp.Or(c.opts.scopes, "read,write"))
	if err != nil {
		return err
	}
	kept := c.keepsOwner()
	key, id, hash := auth.NewKey()
	mode, err := config.AddKey(ctx, c.app.Paths.ConfigFile, auth.Key{Subject: subject, ID: id, Hash: hash, Scopes: scopes}, key)
	if err != nil {
		return err
	}
	kept()
	if c.opts.output != outputText {
		return printJSON(c.Out, keyInfo{id, subject, scopes, key})
	}
	if _, err := fmt.Fprintln(c.Out, key); err != nil {
		return err
	}
	fmt.Fprintf(c.Err, "This is the key of %s, with id %s and the scopes %s. Keep it: it is not shown again, and %s has only its hash.\n",
		subject, id, joinScopes(scopes), c.app.Paths.ConfigFile)
	fmt.Fprintln(c.Err, "A server that is running reads it at SIGHUP; one that was started without keys asks for them after a restart.")
	if !slices.Contains(scopes, auth.AdminSessions) {
		fmt.Fprintf(c.Err, "It sees the sessions and runs of %s alone.\n", subject)
	}
	if mode != config.AuthStaticKeys {
		fmt.Fprintf(c.Err, "The server does not ask for it, because api.auth.mode is %s. Set that to %s.\n", mode, config.AuthStaticKeys)
	}
	return nil
}

// keepsOwner returns what warns if the configuration does not belong to the same user and group any more: the server may not read it then.
func (c *command) keepsOwner() func() {
	file := c.app.Paths.ConfigFile
	before := atomicfile.Owner(file)
	return func() {
		if now := atomicfile.Owner(file); before != "" && now != before {
			c.warn(fmt.Sprintf("%s belongs to %s now, since this user may not keep its owner; give it back: sudo chown %s %s", file, now, before, file))
		}
	}
}

// parseScopes reads scopes with commas between them.
func parseScopes(list string) (scopes []auth.Scope, err error) {
	for name := range strings.SplitSeq(list, ",") {
		scope := auth.Scope(strings.TrimSpace(name))
		if !scope.Known() {
			return nil, fault.New(fault.Usage, "flag --scopes: there is no scope %q", string(scope)).
				WithHint("the scopes are %s", strings.Join(auth.ScopeNames(), ", "))
		}
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

func joinScopes(scopes []auth.Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return cmp.Or(strings.Join(names, ", "), "(none)")
}

// listKeys lists the keys of the server.
func (c *command) listKeys(context.Context) error {
	list := []keyInfo{}
	if api := c.app.Config.API; api != nil {
		for _, k := range api.Auth.Keys {
			list = append(list, keyInfo{ID: k.ID, Subject: k.Subject, Scopes: append([]auth.Scope{}, k.Scopes...)})
		}
	}
	table := display.List([]string{"ID", "SUBJECT", "SCOPES"}, list, func(k keyInfo) []string { return []string{k.ID, k.Subject, joinScopes(k.Scopes)} })
	return printList(c, list, "There are no keys. This makes one: loki --key add SUBJECT", table)
}

// revokeKey takes a key out of the configuration.
func (c *command) revokeKey(ctx context.Context) error {
	id := c.opts.value
	kept := c.keepsOwner()
	if err := config.RemoveKey(ctx, c.app.Paths.ConfigFile, id); err != nil {
		return err
	}
	kept()
	return c.say("Key %s is revoked. A server that is running accepts it until SIGHUP or a restart.", id)
}

// claimSessions gives what has no owner to a subject.
func (c *command) claimSessions(ctx context.Context) error {
	subject := c.opts.value
	if err := checkSubject("claim-sessions", subject); err != nil {
		return err
	}
	sessions, runs, err := c.app.ClaimUnowned(ctx, subject)
	if err != nil {
		return err
	}
	return c.say("%s owns %s and %s more.", subject, text.Count(sessions, "session"), text.Count(runs, "run"))
}
