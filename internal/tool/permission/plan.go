package permission

import (
	"slices"

	"loki/internal/base/process/sandbox"
)

// planVerdict returns the verdict on a call where nothing may be changed, whatever rules and grants allow: v is theirs.
func (j *Judge) planVerdict(call Call, v Verdict) Verdict {
	deny := func(why string) Verdict {
		return Verdict{Action: Deny, Decided: true, Reason: "plan mode changes nothing: " + why}
	}
	_, _, remote := mcpServer(call.Tool)
	switch {
	case v.Action == Deny:
		return v
	case call.Sandbox.Level != "":
		if call.Sandbox.Level != sandbox.Read {
			return deny("programs run at the level read")
		}
		v.Level, v.Hosts, v.Always, v.Wider = sandbox.Read, nil, nil, nil
	case call.Tool == shellTool:
		if v.Level = ""; j.o.Sandboxed || !j.reads(call) {
			return deny("without a sandbox only a few commands that read are run")
		}
		v.Always, v.Wider = nil, nil
	case !call.ReadOnly || remote && !j.o.Rules.Trusts(call.Tool):
		return deny(call.Tool + " may change something")
	}
	return v
}

// reads reports whether a text for the shell is one that runs unasked without rules and without a sandbox.
func (j *Judge) reads(call Call) bool {
	bare := *j
	bare.o.Memory, bare.o.Rules.Default = nil, ""
	bare.o.Rules.List = slices.DeleteFunc(slices.Clone(j.o.Rules.List), func(r Rule) bool { return r.Action == Allow })
	v := bare.judge(call)
	return v.Action == Allow && v.Decided
}
