# There is no seat.
echo "no seat is left" >&2
exit 1
