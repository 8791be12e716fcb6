# Books a hotel.
echo '{"booking": "H-42"}'
