package graph

import "slices"

// assignees reports a question that no subject may answer.
func (v *validator) assignees(n *Node) {
	if list := n.Assignees(); list != nil && (len(list) == 0 || slices.Contains(list, "")) {
		v.err(RuleAssignees, n, "assignees", "", "assignees has to name the subjects who may answer; leave it out if all may who see the run")
	}
}

// answers reports questions whose time for an answer and default do not go together, and default
// answers of approvals that are not among the options.
func (v *validator) answers(n *Node) {
	if !n.asks() {
		return
	}
	fallback := n.Default()
	switch {
	case n.HasTimeout && n.Expires != nil:
		v.err(RuleTimeoutDefault, n, "timeout", "keep expires: it takes a span or a time", "timeout and expires both say until when the question can be answered")
	case n.Fallback != "" && fallback == nil: // the run continues there
	case n.HasTimeout && fallback == nil:
		v.warn(RuleTimeoutDefault, n, "timeout", "add default: with the answer to take then, or fallback:",
			"there is no default, so the node fails without an answer within %s", seconds(n.Timeout))
	case n.Expires != nil && fallback == nil:
		v.warn(RuleTimeoutDefault, n, "expires", "add default: with the answer to take then, or fallback:",
			"there is no default, so the node fails if the question expires without an answer")
	case n.Approval != nil && fallback != nil && !n.HasTimeout && n.Expires == nil:
		v.warn(RuleTimeoutDefault, n, "default", "add timeout: with the seconds to wait for an answer",
			"the default of an approval is for when its timeout is over, and there is none")
	}
	if n.Approval != nil && fallback != nil && len(v.branchOf[n.ID]) == 0 {
		v.defaultAnswer(n, *fallback)
	}
}

// branchRoutes reports what an approval that a map runs has to say about where to go.
func (v *validator) branchRoutes(m, branch *Node) {
	if a := branch.Approval; a != nil && (len(a.Routes) > 0 || a.OnOther != "") {
		field := "on_other"
		if len(a.Routes) > 0 {
			field = "routes"
		}
		v.warn(RuleMapBranch, branch, field, "remove routes and on_other", "map %q delivers the choice for each item, so the routes of its branch lead nowhere", m.ID)
	}
}
