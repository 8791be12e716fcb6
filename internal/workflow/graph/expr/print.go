package expr

import (
	"fmt"
	"strings"
)

// String returns the expression in one way of writing it: with one space around operators, and parentheses only where they are needed.
func (e *Expr) String() string { return e.root.print(precCondition) }

// print writes n as an operand of an operator that binds as tight as least.
func (n *node) print(least int) string {
	kid := func(i, least int) string { return n.kids[i].print(least) }
	text, prec := "", precPrimary
	switch n.op {
	case opLiteral:
		text = n.value.String()
		switch {
		case text[0] == '-':
			prec = precUnary
		case isNumber(n.value): // 1.a is not a member
			prec = precCoalesce
		}
	case opKey:
		text = n.text
	case opList, opCall:
		var args []string
		for _, k := range n.kids {
			args = append(args, k.print(precCondition))
		}
		if text = strings.Join(args, ", "); n.op == opCall {
			text = n.text + "(" + text + ")"
		} else {
			text = "[" + text + "]"
		}
	case opMember:
		text = kid(0, precPrimary) + "." + n.text
	case opIndex:
		text = kid(0, precPrimary) + "[" + kid(1, precCondition) + "]"
	case opNot:
		text, prec = "!"+kid(0, precUnary), precUnary
	case opNegate:
		text, prec = "-"+kid(0, precUnary), precUnary
	case opCondition:
		text, prec = fmt.Sprintf("%s ? %s : %s", kid(0, precOr), kid(1, precCondition), kid(2, precCondition)), precCondition
	default:
		prec = binaries[n.op]
		left, right := prec, prec+1
		switch prec {
		case precCompare: // does not chain
			left++
		case precCoalesce:
			left, right = right, left
		}
		text = kid(0, left) + " " + n.op + " " + kid(1, right)
	}
	if prec < least {
		return "(" + text + ")"
	}
	return text
}
