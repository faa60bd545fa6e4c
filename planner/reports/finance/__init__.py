"""A plan as finance books it: cash and accrual, capital and operating, depreciation, FOCUS forecast rows.

Every table is made from one `Book` (book.py): the plan's payments as exact decimals. So the tables agree
with the plan and with each other to the last decimal, in each currency.
"""
