package expr

import (
	"cmp"
	"math"
	"math/big"

	"loki/internal/base/value"
)

func isNumber(v value.Value) bool { return v.Kind() >= value.Int && v.Kind() <= value.Float }

// exact returns a number without rounding.
func exact(v value.Value) *big.Rat {
	if f, _ := v.AsFloat(); v.Kind() == value.Float {
		return new(big.Rat).SetFloat64(f)
	}
	r, _ := new(big.Rat).SetString(v.Text())
	return r
}

// compareNumbers compares two numbers by value.
func compareNumbers(a, b value.Value) int {
	f, _ := a.AsFloat()
	g, _ := b.AsFloat()
	if math.Abs(f) < 1<<53 && math.Abs(g) < 1<<53 { // all integers are floats
		return cmp.Compare(f, g)
	}
	return exact(a).Cmp(exact(b))
}

func negative(v value.Value) value.Value { return calculate("*", value.Of(-1), v) }

// calculate returns the result of an arithmetic operator, null if there is none.
func calculate(op string, a, b value.Value) value.Value {
	f, ok := a.AsFloat()
	g, both := b.AsFloat()
	floats := a.Kind() == value.Float || b.Kind() == value.Float
	if i, ok := a.AsInt(); ok && op == "+" {
		if j, ok := b.AsInt(); ok && (i+j > i) == (j > 0) { // no overflow
			return value.Of(i + j)
		}
	}
	switch {
	case !ok || !both || g == 0 && (op == "/" || op == "%"):
		return null
	case floats, math.Abs(f) < 1<<26 && math.Abs(g) < 1<<26: // products of integers are exact
		r := calculateFloat(op, f, g)
		if !floats && r == math.Trunc(r) {
			return value.Of(int64(r))
		}
		return value.Of(r) // null for an infinity
	}
	r, x, y := new(big.Rat), exact(a), exact(b)
	switch op {
	case "+":
		r.Add(x, y)
	case "-":
		r.Sub(x, y)
	case "*":
		r.Mul(x, y)
	case "/":
		r.Quo(x, y)
	default:
		r.SetInt(new(big.Int).Rem(x.Num(), y.Num()))
	}
	if !r.IsInt() {
		f, _ := r.Float64()
		return value.Of(f)
	}
	v, _ := value.ParseNumber(r.Num().String()) // a float if it does not fit 64 bits
	return v
}

func calculateFloat(op string, f, g float64) float64 {
	switch op {
	case "+":
		return f + g
	case "-":
		return f - g
	case "*":
		return f * g
	case "/":
		return f / g
	}
	return math.Mod(f, g)
}
