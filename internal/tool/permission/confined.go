package permission

import (
	"slices"

	"loki/internal/base/process/sandbox"
)

// judgeConfined judges a call of a tool that is not a shell and whose program runs in the sandbox. At [sandbox.Read]
// it needs no consent unless a rule asks about it or denies it.
func (j *Judge) judgeConfined(call Call, rules []*Rule) Verdict {
	asked := call.Sandbox
	rules = slices.DeleteFunc(slices.Clone(rules), func(r *Rule) bool {
		return r.Action == Allow && r.Sandbox != "" && !r.Sandbox.Covers(asked.Level)
	})
	v := j.judgeTool(call, rules)
	v.Level, v.Hosts = asked.Level, asked.Hosts
	switch {
	case v.Rule != "":
		i := slices.IndexFunc(rules, func(r *Rule) bool { return r.String() == v.Rule })
		if v.Action == Allow && rules[i].Sandbox == "" {
			v.Level, v.Hosts = sandbox.Full, nil
		}
		if v.Action == Ask && asked.Level != sandbox.Read {
			v.Reason += "; " + wish(asked.Level, asked.Hosts)
		}
	case v.Decided:
	case asked.Level == sandbox.Read:
		v.Action, v.Reason, v.Always = Allow, "", nil
	default:
		v.Action, v.Reason = Ask, "no rule allows the level "+string(asked.Level)
	}
	if v.Decided = true; v.Level == sandbox.Full && v.Action != Deny {
		call.Sandbox = sandbox.Declaration{}
		if unheld := j.judgeTool(call, rules); unheld.Action == Deny { // nothing keeps it from what the code names
			return unheld
		}
	}
	switch {
	case v.Action != Ask:
	case v.Level.Covers(sandbox.Network):
		v.Always = nil // a lasting answer would hold for other hosts, or for other programs at Full
	case v.Level == sandbox.Write && v.Rule == "":
		v.Always, v.Wider = nil, []Grant{everyWrite}
	default:
		for i := range v.Always {
			v.Always[i].Level = v.Level
		}
	}
	return v
}
