# The people of cities, in millions.
echo '{"cities": {"Rome": {"people": 2.8}, "Bern": {"people": 0.1}, "Atlantis": {"people": 9}, "Cairo": {"people": 10.1}, "Paris": {"people": 2.1}}}'
