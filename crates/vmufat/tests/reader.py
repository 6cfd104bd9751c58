"""Reads a VMUFAT volume: python3 reader.py IMAGE FOLDER

Written from the table of bytes alone, without a look at the program that writes volumes. It puts each
file into FOLDER, called by its name in hexadecimal digits, and prints a line for each: kind, copy
protection, first block, name, time stamp, size, header. Whatever is not as the table says ends it.
"""

import os
import sys

BLOCK = 512
FREE, END, DAMAGED = 0xFFFC, 0xFFFA, 0xFFFF
KINDS = {0x33: "data", 0xCC: "game"}


def need(condition, *what):
    if not condition:
        sys.exit(" ".join(str(part) for part in what))


def word(block, at):
    return block[at] | block[at + 1] << 8


def main(image, folder):
    with open(image, "rb") as file:
        volume = file.read()
    count = len(volume) // BLOCK
    need(len(volume) % BLOCK == 0 and 256 <= count <= 65536, "size", len(volume))
    block = lambda number: volume[number * BLOCK : (number + 1) * BLOCK]

    # The root block is the last.
    last = count - 1
    root = block(last)
    need(root[:16] == b"\x55" * 16, "magic")
    need(word(root, 0x40) == last and word(root, 0x44) == last, "last block, root block")
    fat_last, fat_size = word(root, 0x46), word(root, 0x48)
    directory_last, directory_size = word(root, 0x4A), word(root, 0x4C)
    users, hidden = word(root, 0x50), word(root, 0x52)

    # The FAT ends in front of the root block, and has a word for each block, in their order.
    need(fat_size == -(-2 * count // BLOCK), "size of the FAT", fat_size)
    need(fat_last == last - 1, "place of the FAT", fat_last)
    fat_first = fat_last - fat_size + 1
    fat_bytes = b"".join(block(number) for number in range(fat_first, fat_last + 1))
    fat = [word(fat_bytes, 2 * number) for number in range(count)]

    # The directory ends in front of the FAT.
    need(directory_last == fat_first - 1, "place of the directory", directory_last)
    directory_first = directory_last - directory_size + 1
    if count == 256:
        need(directory_size == 13, "size of the directory", directory_size)
    else:
        need(directory_size == (count - 1 - fat_size) // 17, "size of the directory", directory_size)
    need(users + hidden <= directory_first, "blocks for files", users, hidden)

    # What is the volume's own is marked: chains that run downwards. A number that is a mark can't
    # stand for a block; there the chain has an end instead.
    owner = {last: "root"}
    need(fat[last] == END, "word of the root block")
    for name, low, high in ("FAT", fat_first, fat_last), ("directory", directory_first, directory_last):
        for number in range(low, high + 1):
            following = number - 1
            is_end = number == low or following in (FREE, END, DAMAGED)
            need(fat[number] == (END if is_end else following), "word of", name, number, fat[number])
            owner[number] = name

    # The directory is read from its last block downwards.
    for slot in range(16 * directory_size):
        at = slot % 16 * 32
        record = block(directory_last - slot // 16)[at : at + 32]
        if record[0] == 0:
            need(record == bytes(32), "a free record that is not zero", slot)
            continue
        need(record[0] in KINDS and record[1] in (0x00, 0xFF), "record", slot, record)
        need(record[0x1C:] == bytes(4), "end of record", slot)
        name, stamp = record[4:16].rstrip(b"\0"), record[16:24]
        need(0 not in name and name, "name", slot, name)
        need(all(digit < 10 for byte in stamp for digit in (byte >> 4, byte & 15)), "stamp", stamp)
        first, size, header = word(record, 2), word(record, 0x18), word(record, 0x1A)
        contents, number = [], first
        while True:
            need(number < users, "block of", name, number)
            need(number not in owner, "block of two", name, number, owner.get(number))
            owner[number] = name
            contents.append(block(number))
            if fat[number] == END:
                break
            number = fat[number]
        need(len(contents) == size, "size of", name, size, len(contents))
        if record[0] == 0xCC:
            need(first == 0 and all(owner.get(n) == name for n in range(size)), "place of", name)
        with open(os.path.join(folder, name.hex()), "xb") as out:
            out.write(b"".join(contents))
        print(KINDS[record[0]], record[1], first, name.hex(), stamp.hex(), size, header)

    # Nothing else is in use.
    for number, value in enumerate(fat):
        need(number in owner or value == FREE, "word of no file", number, value)


main(*sys.argv[1:])
